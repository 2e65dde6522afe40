"""
What does brevity cost?
=======================

One option says how few tokens should decide. Here it grows from 0 to 1 while accuracy and the size of the minimum
sufficient set are watched, on real reviews (``pip install 'keytokens[demo]'``).
"""

# %%
# Small samples, so expect a point or two of noise in the accuracy.
import matplotlib.pyplot as plt
import numpy as np

import keytokens as kt
from keytokens.io.corpora import imdb_reviews

texts, labels = imdb_reviews()
test, truth = texts[2000:2500], labels[2000:2500]
steps, accuracy, size = [0.0, 0.3, 0.6, 1.0], [], []
for brevity in steps:
    clf = kt.KeyTokenClassifier(ngrams=(1, 2), brevity=brevity).fit(texts[:2000], labels[:2000])
    accuracy.append(clf.score(test, truth))
    size.append(float(np.median([e.sufficient.size for e in clf.explain_many(test)])))
    print(f"brevity {brevity}: accuracy {accuracy[-1]:.3f}, {size[-1]:.0f} tokens suffice")

# %%
figure, axes = plt.subplots(figsize=(4.5, 3.5))
axes.plot(size, accuracy, "o-")
for at, x, y in zip(steps, size, accuracy, strict=True):
    axes.annotate(f"{at:g}", (x, y), textcoords="offset points", xytext=(5, 5))
axes.set(xlabel="tokens in the median sufficient set", ylabel="accuracy", xlim=(0, 1.1 * max(size)))
axes.margins(y=0.2)
figure.tight_layout()

# %%
# What the briefest model saves. Five hundred reviews are too few to tell what it costs.
answer = 1 - size[-1] / size[0]
print(f"brevity 1 instead of 0: accuracy {accuracy[-1] - accuracy[0]:+.3f}, {answer:.0%} fewer tokens")
