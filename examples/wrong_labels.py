"""
Which labels are wrong?
=======================

One label in ten of a training set is turned over on purpose, and flip sets are asked to find them. Where a model that
has not seen a text contradicts its label, and many tokens would have to go to change its mind, the label is suspicious.
"""

# %%
# Two thousand real reviews (``pip install 'keytokens[demo]'``), two hundred of them with the wrong label.
import numpy as np

import keytokens as kt
from keytokens.io.corpora import imdb_reviews

texts, right = (part[:2000] for part in imdb_reviews())
wrong = np.random.default_rng(0).choice(2000, 200, replace=False)
given = np.array(right)
given[wrong] = np.where(given[wrong] == "positive", "negative", "positive")

# %%
# Every review is judged by a model that was trained without its fold.
found: list[kt.Explanation] = [None] * len(texts)
for fold in range(4):
    inside = np.arange(len(texts)) % 4 == fold
    clf = kt.KeyTokenClassifier().fit([texts[i] for i in np.flatnonzero(~inside)], given[~inside])
    for i, e in zip(np.flatnonzero(inside), clf.explain_many([texts[i] for i in np.flatnonzero(inside)]), strict=True):
        found[i] = e

# %%
# The strength of an objection is the share of the text's tokens that would have to be deleted to withdraw it.
strength = [e.flip.size / e.certificate.tokens if e.label != given[i] else 0.0 for i, e in enumerate(found)]
suspects = np.argsort(strength)[::-1][:100]
print(texts[suspects[0]][:200], "...")
print(f"labelled {given[suspects[0]]}, and {found[suspects[0]].flip.size} tokens say otherwise")

# %%
# By chance one suspect in ten would be wrong.
answer = float(np.isin(suspects, wrong).mean())
print(f"{answer:.2f} of the first hundred suspects have a wrong label")
