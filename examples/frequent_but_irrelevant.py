"""
Does a frequent token become important?
=======================================

In planted documents one rare token decides the label, and all others are frequent and say nothing. The theory says
that attention goes to the signed frequency of a token, not to its frequency.
"""

# %%
# Each document has twelve places: one of eight important tokens, and irrelevant ones in the others. Mirrored documents
# make the average signed frequency of every irrelevant token exactly 0.
import numpy as np

import keytokens as kt
from keytokens.lab.claims.embeddings.data import planted
from keytokens.lab.claims.embeddings.stages import Step, gaussian_start

rng = np.random.default_rng(0)
data = planted(rng, n=400, T=12, positives=4, negatives=4, irrelevants=20, mirrored=True)
frequency, alpha, important = data.frequency(), data.signed_frequency(), data.kinds != 0
print(f"an irrelevant token is {frequency[~important].mean() / frequency[important].mean():.1f} times as frequent")
print(f"largest |alpha| of an irrelevant token {np.abs(alpha[~important]).max():.0e}")

# %%
# One gradient step on the embeddings moves every token along v by half of alpha, up to an error that shrinks as the
# dimension grows. The values that it gives are those of the important tokens.
step = Step(data, gaussian_start(rng, data.V, 4096), eta=1.0)
print(
    f"correlation of the move with alpha {step.correlation:.4f}, with the frequency",
    f"{np.corrcoef(np.abs(step.gain), frequency)[0, 1]:+.4f}",
)

# %%
# A whole training, from the counts alone, gives them more than their share of attention.
clf = kt.AttentionClassifier(prior=kt.Prior(sink=0)).fit(data.counts, data.labels)
share = clf.mean_attention_[important].sum() / clf.mean_attention_.sum()
print(f"attention on important tokens {share:.2f}; at the start {1 / 12:.2f}")

# %%
# The eight tokens with the largest contribution: how many of them are important?
said = clf.mean_attention_ * np.abs(clf.values_[0] + clf.intercept_[0])
answer = int(important[np.argsort(-said)[:8]].sum())
print(f"{answer} of 8")
