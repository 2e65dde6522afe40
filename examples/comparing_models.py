"""
Same accuracy, same reasons?
============================

Two models of the same reviews, one of them trained to be brief, agree on nearly all labels. Their sufficient sets show
how differently they get there.
"""

# %%
# ``brevity`` says how few tokens should decide (``pip install 'keytokens[demo]'`` for the reviews).
import numpy as np

import keytokens as kt
from keytokens.io.corpora import imdb_reviews

texts, labels = imdb_reviews()
test, truth = texts[2000:2300], np.array(labels[2000:2300])
found = {}
for brevity in (0.0, 0.8):
    clf = kt.KeyTokenClassifier(ngrams=(1, 2), brevity=brevity).fit(texts[:2000], labels[:2000])
    found[brevity] = list(clf.explain_many(test))
    accuracy = np.mean([e.label == label for e, label in zip(found[brevity], truth, strict=True)])
    size = np.median([e.sufficient.size for e in found[brevity]])
    print(f"brevity {brevity}: accuracy {accuracy:.3f}, {size:.0f} tokens suffice")

# %%
# They give the same label to most reviews. Of these: how much of the brief model's reason is part of the other's?
agree = [(a, b) for a, b in zip(*found.values(), strict=True) if a.label == b.label]
print(f"{len(agree) / len(test):.3f} of the labels agree")
same = [(a, b) for a, b in agree if b.sufficient.size]  # a label may need no token: the intercept beats all opposition
shared = []
for many, few in same:
    reasons = {item.text for item in many.sufficient}
    shared.append(np.mean([item.text in reasons for item in few.sufficient]))
print(f"{np.mean(shared):.2f} of the brief reasons are among the long ones")

# %%
# How many times fewer tokens the brief model needs, the median over reviews on which the two agree.
answer = float(np.median([many.sufficient.size / few.sufficient.size for many, few in same]))
print(f"{answer:.1f} times fewer tokens")
