"""
What if a hypothesis is dropped?
================================

For one input whose other tokens share one score, gradient descent ends in the max-margin direction of the best token
from any start. We drop "share one score" and find a start from which it ends somewhere else.
"""

# %%
# The theorem is an object: what it says, hypotheses that are tested, and a conclusion that can fail.
import numpy as np

from keytokens.lab.claims import claims, verify
from keytokens.lab.claims.instances import one_bag
from keytokens.lab.descent import flow
from keytokens.lab.problems.geometry import misalignment
from keytokens.lab.selection import has_equal_scores, local_optimum

(theorem,) = claims(["mm.thm2"])
print(theorem.says, *(f"- {hypothesis.says}" for hypothesis in theorem.hypotheses), sep="\n")
print(verify("mm.thm2", seeds=20))

# %%
# The same three tokens twice: with scores 1, 0.9, 0.9 the hypothesis holds, with 1, 0.9, 0 it does not.
ends = {}
for third in (0.9, 0.0):
    problem = one_bag(third)
    best = local_optimum(problem.keys, problem.scores, [0])
    end = flow(problem, np.array([0.0, -1.0]), 1e4).state.p
    ends[third] = misalignment(end, best.solution.p)
    print(
        f"third score {third}: equal scores {has_equal_scores(problem.keys, problem.scores)},",
        f"1 - cos to the max-margin direction of the best token {ends[third]:.1e}",
    )

# %%
# What it ends in instead is another optimum: the second token beats its only neighbour, the third, and stays selected.
problem = one_bag(0.0)
second = local_optimum(problem.keys, problem.scores, [1])
end = flow(problem, np.array([0.0, -1.0]), 1e4).state.p
print(f"1 - cos to the direction of the second token {misalignment(end, second.solution.p):.1e}")

# %%
# 1 - cos to the direction that the theorem would promise: the two directions are almost at right angles.
answer = ends[0.0]
print(f"{answer:.3f}")
