"""
How much ink does a digit need?
===============================

Ten classes, and no text at all: a picture of a digit is a document whose tokens are the 64 places and whose counts are
the ink there. The model on counts reads scikit-learn's digits, which come with it.
"""

# %%
# ``AttentionClassifier`` is the model behind the text classifier, on any matrix of counts. Places are dense, nothing
# like words, so the prior is wide and training goes on for longer.
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import keytokens as kt

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
clf = kt.AttentionClassifier(brevity=0, prior=kt.Prior(spread=8, tol=1e-4)).fit(X_train, y_train)
print(f"accuracy {clf.score(X_test, y_test):.3f}")

# %%
# One attention serves all classes: where does the model look, as shares of its attention to all digits?
look = clf.mean_attention_.reshape(8, 8)
for row in look / look.max():
    print("".join(" .:-=+*#%@"[int(9 * share)] for share in row))

# %%
# The scores of a class add up over places, so ink can be taken away and the answer asked again: erase the places from
# the least attention on, as long as nine of ten predictions stay what they were.
order = np.argsort(clf.mean_attention_)
whole = clf.predict(X_test)
agreement = [np.mean(clf.predict(np.where(np.isin(np.arange(64), order[:k]), 0, X_test)) == whole) for k in range(64)]
answer = 64 - next(k for k in range(64) if agreement[k] < 0.9) + 1
print(f"{answer} of 64 places are enough for nine of ten predictions")
