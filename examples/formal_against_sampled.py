"""
Do the first words of LIME or SHAP fix a label?
===============================================

A minimum sufficient set fixes the label whatever else is hidden. We take as many words by the scores of two sampled
explanations, written here in a few lines each so that nothing else need be installed, and look whether they do.
"""

# %%
# A model of single words, so that words and tokens are the same thing.
import numpy as np

import keytokens as kt
from keytokens.io.corpora import imdb_reviews

texts, labels = imdb_reviews()
clf = kt.KeyTokenClassifier(ngrams=(1, 1)).fit(texts[:2000], labels[:2000])
chosen = [text for text in texts[2000:3000] if 60 <= len(text.split()) <= 120][:20]


def logits(words: list[str], kept: np.ndarray) -> np.ndarray:
    """f of the text with only some of its distinct words; one row of booleans a text."""
    return clf.decision_function([" ".join(w for w, keep in zip(words, row, strict=True) if keep) for row in kept])


# %%
# In the manner of LIME: random deletions, nearer ones weighing more, and a ridge regression on what is left.


def surrogate(words: list[str], rng: np.random.Generator, samples: int = 200, width: float = 0.25) -> np.ndarray:
    kept = rng.random((samples, len(words))) < rng.random((samples, 1))
    weight = np.exp(-((1 - np.sqrt(kept.mean(axis=1))) ** 2) / width**2)[:, None]
    X = np.column_stack([np.ones(samples), kept])
    A = X.T @ (weight * X) + np.diag([1e-9, *np.ones(len(words))])
    return np.linalg.solve(A, X.T @ (weight[:, 0] * logits(words, kept)))[1:]


# %%
# In the manner of SHAP: words enter in random orders, and each is paid for what it changes when it enters.


def shapley(words: list[str], rng: np.random.Generator, orders: int = 5) -> np.ndarray:
    paid = np.zeros(len(words))
    for _ in range(orders):
        order = rng.permutation(len(words))
        kept = np.argsort(order)[None] < np.arange(len(words) + 1)[:, None]
        paid[order] += np.diff(logits(words, kept))
    return paid / orders


# %%
# A set of words fixes the label if their votes beat all opposing ones; this is the worst that deletions can do. So it
# is enough to delete all other supporters and to ask the model.


def fixes(e: kt.Explanation, words: list[str], kept: np.ndarray) -> bool:
    sign = 1 if e.logit > 0 else -1
    votes = {use.text: sign * use.contribution for use in e.tokens}
    against = np.array([votes[word] < 0 for word in words])
    return bool(sign * logits(words, (kept | against)[None])[0] > 0)


rng, verdicts = np.random.default_rng(0), []
for e in clf.explain_many(chosen):
    words = [use.text for use in e.tokens]  # every occurrence counts, so a word that is kept is kept everywhere
    size, sign = e.sufficient.size, 1 if e.logit > 0 else -1
    fixed = [fixes(e, words, np.isin(words, [item.text for item in e.sufficient]))]
    for scores in (surrogate(words, rng), shapley(words, rng)):
        total = {word: sum(sign * scores[np.array(words) == word]) for word in words}
        fixed.append(fixes(e, words, np.isin(words, sorted(total, key=lambda word: -total[word])[:size])))
    verdicts.append(fixed)

# %%
formal, by_surrogate, by_shapley = np.mean(verdicts, axis=0).tolist()
print(
    f"labels fixed: formal {formal:.2f}, regression on samples {by_surrogate:.2f}, Shapley by samples {by_shapley:.2f}"
)
answer = by_surrogate
