"""
Where does the best attention in a ball point?
==============================================

Instead of a descent, take the best p of each length and let the length grow. Its direction tends to the max-margin
direction of the best tokens, and in the plane a scan of all angles proves each point of the path.
"""

# %%
# Two inputs; the better token of each has score 1, the other 0.
import matplotlib.pyplot as plt
import numpy as np

from keytokens.lab.paths import regularisation_path
from keytokens.lab.problems.geometry import misalignment
from keytokens.lab.problems.problem import Problem
from keytokens.lab.svm import MarginProblem, solve
from keytokens.model.ragged import Bags

keys = Bags.of([[[1.0, 0.0], [0.0, 0.0]], [[-2.0, 1.0], [0.0, 0.0]]])
problem = Problem.of(keys, np.array([1.0, 0.0, 1.0, 0.0]))
best = solve(MarginProblem.from_selection(keys, [0, 0]))
print("max-margin p =", best.p)

# %%
# The path, with what is known of each of its points.
radii = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
path = regularisation_path(problem, radii)
off = [misalignment(point.p, best.p) for point in path]
for point, distance in zip(path, off, strict=True):
    print(f"R = {point.radius:>3.0f}: 1 - cos = {distance:.1e}; {point.proof.value}")

# %%
# On logarithmic scales both ways.
figure, axes = plt.subplots(figsize=(4.5, 3.5))
axes.loglog(radii, off, "o-")
axes.set(xlabel="radius R", ylabel="1 − cos to the max-margin direction")
figure.tight_layout()

# %%
answer = off[-1]
print(f"at R = 64 the direction is off by 1 - cos = {answer:.2e}")
