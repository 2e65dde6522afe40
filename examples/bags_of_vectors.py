"""
Which shape of a molecule binds?
================================

Data as in MUSK: a molecule takes several shapes, it binds if one of them fits, and only the molecule has a label.
The classifier of bags must find the shape that no label points at.
"""

# %%
# Made-up molecules: three to nine shapes in five dimensions. A shape fits if it lies near one hidden place; the others
# are noise. Half of the molecules have one that fits.
import numpy as np

import keytokens as kt

rng = np.random.default_rng(0)
place = np.array([2.0, -1.5, 1.0, 0.0, 0.0])
labels = np.arange(240) % 2
bags, fitting = [], []
for label in labels:
    shapes = rng.normal(size=(rng.integers(3, 10), 5))
    fitting.append(int(rng.integers(len(shapes))))
    if label:
        shapes[fitting[-1]] = place + 0.4 * rng.normal(size=5)
    bags.append(shapes)

# %%
# Train on two thirds, without ever saying which shape it was.
clf = kt.BagClassifier(random_state=0).fit(bags[:160], labels[:160])
print(f"accuracy {clf.score(bags[160:], labels[160:]):.3f}")

# %%
# The proof of one molecule that binds, in a sentence.
found = [(clf.explain(bags[i]), fitting[i]) for i in range(160, 240) if labels[i] and clf.predict([bags[i]])[0] == 1]
print(found[0][0].certificate.sentence)

# %%
# How often is the first shape of the sufficient set the one that fits?
answer = sum(e.sufficient.indices[0] == shape for e, shape in found) / len(found)
print(f"{answer:.3f} of {len(found)} molecules")
