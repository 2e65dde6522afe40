"""
How few tokens decide a film review?
====================================

A model is trained on two thousand real reviews and asked for the fewest tokens that fix each of its verdicts.
The reviews come with ``pip install 'keytokens[demo]'``.
"""

# %%
# The reviews are shuffled with a fixed seed. The model sees the first part and is judged on the second.
import numpy as np

import keytokens as kt
from keytokens.io.corpora import imdb_reviews

texts, labels = imdb_reviews()
train, test = slice(0, 2000), slice(2000, 2400)
clf = kt.KeyTokenClassifier().fit(texts[train], labels[train])
print(f"accuracy {clf.score(texts[test], labels[test]):.3f}")

# %%
# A sufficient set holds the fewest tokens such that the label stays whatever other tokens are deleted. It is a proved
# minimum, so its size says how much of a review the verdict rests on.
found = list(clf.explain_many(texts[test]))
sizes = np.array([e.sufficient.size for e in found])
tokens = np.array([e.certificate.tokens for e in found])
shortest = min((e for e in found if e.sufficient.size), key=lambda e: e.sufficient.size / e.certificate.tokens)
print(shortest.certificate.sentence)
print(", ".join(item.text for item in shortest.sufficient))

# %%
# The share of a review's distinct tokens that fixes its label, the median over the reviews.
answer = float(np.median(sizes / tokens))
print(f"{answer:.3f} of the tokens fix the label of the median review")
