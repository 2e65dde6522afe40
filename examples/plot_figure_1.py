"""
Where does attention go, and how fast?
======================================

The geometry of max-margin token selection in the plane: one input with three tokens, and descents from six starts.
All of them turn to one direction, which a quadratic program finds without any descent.
"""

# %%
# Three keys; the first token has score 1, the others 0.9. The program: the shortest p with p'(k_1 - k_t) >= 1.
import matplotlib.pyplot as plt

from keytokens import lab

problem = lab.Problem([[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]], scores=[[1.0, 0.9, 0.9]])
best = problem.svm()
print("p =", best.p, "margin", best.margin, "largest residual", max(best.residuals().values()))

# %%
# Steps of length 0.1 along the gradient, from six starts.
starts = [[0.0, y] for y in (1.0, 0.5, 0.0, -0.5, -1.0, -1.5)]
runs = problem.descend(steps=200, eta=0.1, starts=starts, record=range(201))
figure, axes = plt.subplots(figsize=(4.5, 5))
axes.axline((0, 0), best.p, color="black", linestyle="--", label="max-margin direction")
for run in runs:
    axes.plot(*(run["norm"][:, None] * run["direction"]).T, linewidth=1)
axes.plot(*problem.X.rows.T, "k*", label="keys")
axes.set(xlim=(-4, 3), ylim=(-2.5, 7), xlabel="p₁", ylabel="p₂", aspect="equal")
axes.legend()
figure.tight_layout()

# %%
# The gradient flow can be followed as far as one likes: 1 - cos to the solution falls like 1/|p|².
for norm in (100.0, 1000.0, 10_000.0):
    off = problem.flow(norm, start=[0.0, 1.0]).distance(best.p)[-1]
    print(f"|p| = {norm:>7,.0f}: 1 - cos = {off:.2e}, times |p|² {off * norm**2:.2f}")

# %%
answer = off * norm**2
print(f"|p|² (1 - cos) tends to {answer:.3f}")
