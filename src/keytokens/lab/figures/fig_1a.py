"""Fig 1(a): one input, three tokens, two of them with one score: every start goes to one direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..claims.instances import GMM, STARTS, one_bag
from ..descent.flow import flow
from ..descent.steps import Normalised
from ..descent.trajectory import log_spaced
from ..problems.geometry import misalignment
from ..problems.trials import Trials
from ..selection import local_optimum
from .figure import CODE, OURS, PAPER, Check, Figure, Rule, Tables, table
from .look import BLACK, STYLES, Style, number, plane, ray, sheet, tokens, walk
from .tables import cosine, distances, rows_of, speed, value_at, walks

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CAPTION = """\
One input with three tokens, their keys drawn as stars; the first has score 1, the others 0.9. The paper proves for \
one input whose other tokens share one score that gradient descent ends in the max-margin direction of the best \
token (dashed), wherever it starts. Left: six starts, steps of length 0.1, a marker every ten steps. Right (ours): \
how fast they turn. 1 − cos falls like 1/t². Published code divides the gradient by its length plus a small number; \
there the runs stop at |p| = 28. The runs drawn here have no such floor."""
FLOOR = """\
The runs of published code, with 1e-12 added to the length of the gradient: they stop at |p| = 28, so their cos says \
nothing of the limit. Without the floor 1 − cos is 2.3e-4 at the same step."""


def compute(small: bool) -> Tables:
    problem, starts = one_bag(0.9), [np.array([0.0, y]) for y in STARTS]
    best = local_optimum(problem.keys, problem.scores, [0])
    floored = Trials.repeated(problem, 6).descend(1000, 0.1, start=np.array(starts), floor=1e-12)
    p = best.solution.p
    far = [100.0, 1000.0, 10_000.0]
    return {
        "paths": walks(problem, Normalised(0.1), starts, 200),
        "distances": distances(problem, starts, [GMM] * 6, log_spaced(1000 if small else 10_000, 8)[1:].tolist()),
        "floor": table(start=STARTS, cos=[cosine(p, GMM) for p in floored], norm=np.linalg.norm(floored, axis=1)),
        "flow": table(norm=far, one_minus_cos=[misalignment(flow(problem, starts[0], R).state.p, GMM) for R in far]),
        "answer": table(p1=[p[0]], p2=[p[1]], half_square=[p @ p / 2], neighbours=[best.neighbours.sum()]),
    }


def draw(tables: Tables) -> Drawing:
    drawing, (left, right) = sheet(2, 4.2, (1, 1.35))
    ray(left, GMM, Style(BLACK, "--", ""), "max-margin direction")
    for k, style in enumerate(STYLES):
        path = rows_of(tables["paths"], k)
        walk(left, path["p1"], path["p2"], style)
    places = [(9.0, -2.0), (7.0, 2.0), (6.0, -13.0)]
    tokens(left, one_bag(0.9).keys.rows, ["score 1", "score 0.9", "score 0.9"], places)
    plane(left, (-3.9, -2.6), (2.9, 7.2))
    left.legend(loc="lower right")
    speed(right, tables["distances"], [f"start (0, {number(y)})" for y in STARTS], (100.0, 0.04))
    right.legend(loc="lower left")
    right.set_ylim(bottom=1e-7)
    return drawing


def checks(tables: Tables) -> list[Check]:
    answer, floor, first = tables["answer"], tables["floor"], rows_of(tables["distances"], 0)
    late = tables["distances"]["one_minus_cos"][tables["distances"]["t"] == 1000]
    law = value_at(first, int(first["t"].max()), "one_minus_cos") * float(first["t"].max()) ** 2
    return [
        Check("starts that end in the max-margin direction", (late < 1e-3).sum(), 6, 0, PAPER),
        Check("max-margin direction, p₁", answer["p1"][0], -10 / 101, 1e-9, OURS),
        Check("max-margin direction, p₂", answer["p2"][0], 100 / 101, 1e-9, OURS),
        Check.printed("half of its squared norm", answer["half_square"][0], "0.49505", CODE),
        Check("tokens on the margin", answer["neighbours"][0], 1, 0, OURS),
        Check("1 − cos after 1,000 steps from (0, 1)", value_at(first, 1000, "one_minus_cos"), 2.3e-4, 5e-6, OURS),
        Check("t² (1 − cos) at the last step", law, 230, 5, OURS),
        Check("1 − cos of the gradient flow at |p| = 10,000", tables["flow"]["one_minus_cos"][2], 2.3e-8, 5e-10, OURS),
        Check.printed("least cos after 1,000 steps with a floor", floor["cos"].min(), "0.9965", OURS, FLOOR),
        Check.printed("largest cos after 1,000 steps with a floor", floor["cos"].max(), "0.9973", OURS, FLOOR),
        Check("largest |p| with a floor", floor["norm"].max(), 31, 0, OURS, rule=Rule.AT_MOST),
    ]


FIGURE = Figure(
    name="1a",
    title="One input: all starts go to the max-margin direction",
    caption=CAPTION,
    compute=compute,
    draw=draw,
    checks=checks,
)
