"""Fig 1(c): three inputs with seven tokens each: every start goes to the max-margin direction of the best tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..claims.instances import STARTS, three_bags
from ..descent.flow import flow
from ..descent.steps import Normalised
from ..descent.trajectory import log_spaced
from ..problems.geometry import misalignment
from ..problems.trials import Trials
from ..svm.problem import MarginProblem
from ..svm.solver import solve
from .figure import CODE, OURS, Check, Figure, Rule, Tables, table
from .look import BLACK, BLUE, GREY, ORANGE, STYLES, Style, number, plane, ray, sheet, walk
from .tables import cosine, distances, rows_of, speed, walks

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CAPTION = """\
Three inputs with seven tokens each, random keys as in the published notebook: stars are the best token of each \
input (score 1), dots the others (score 0.5). Left: from six starts descent with steps of length 0.1 turns towards \
the max-margin direction (dashed), whose dotted perpendicular parts best tokens from others. Right (ours): 1 − cos \
first falls through zero, since the paths cross the ray, and settles to the slope of 1/t² only late: one token \
misses the margin by 0.007 and pulls until |p| is several hundred."""
FLOOR = """\
≥ 0.99994 belongs to runs with 1e-12 added to the length of the gradient. They stop at |p| = 26, by chance where the \
paths cross the ray. Exact descent goes on to the other side of the ray: 0.99977 at |p| = 100, as the gradient flow \
has it too; from there 1 − cos falls for ever."""
KEYS = """\
The published objective 0.31319 comes from keys with the score as a third coordinate; with the two coordinates that \
the attention really uses it is 0.37134, in the same direction of the plane."""


def compute(small: bool) -> Tables:
    problem, starts = three_bags(), [np.array([x, 0.0]) for x in STARTS]
    solution = solve(MarginProblem.from_selection(problem.keys, [0, 0, 0]))
    p = solution.p
    wide = np.column_stack([problem.keys.rows, problem.scores])
    p_wide = solve(MarginProblem.from_selection(problem.keys.with_rows(wide), [0, 0, 0])).p
    runs, begin = Trials.repeated(problem, 6), np.array(starts)
    floored = runs.descend(1000, 0.1, start=begin, floor=1e-12)
    plain = runs.descend(1000, 1.0, start=begin, plain=True)
    at = sorted({*log_spaced(1000 if small else 10_000, 12)[1:].tolist(), 200})
    return {
        "paths": walks(problem, Normalised(0.1), starts, 200),
        "distances": distances(problem, starts, [p] * 6, at),
        "ends": table(
            start=STARTS,
            cos_floor=[cosine(one, p) for one in floored],
            norm_floor=np.linalg.norm(floored, axis=1),
            cos_plain=[cosine(one, p) for one in plain],
        ),
        "keys": table(
            bag=problem.keys.bag, k1=problem.keys.rows[:, 0], k2=problem.keys.rows[:, 1], score=problem.scores
        ),
        "answer": table(
            p1=[p[0]],
            p2=[p[1]],
            half_square=[p @ p / 2],
            third_slack=[np.sort(solution.slack)[2]],
            half_square_3d=[p_wide @ p_wide / 2],
            slope_3d=[p_wide[1] / p_wide[0]],
            flow_100=[misalignment(flow(problem, starts[0], 100.0).state.p, p)],
        ),
    }


def draw(tables: Tables) -> Drawing:
    drawing, (left, right) = sheet(2, 4.0, (1.25, 1))
    answer, keys = tables["answer"], tables["keys"]
    p = np.array([answer["p1"][0], answer["p2"][0]])
    ray(left, p, Style(BLACK, "--", ""), "max-margin direction")
    side = np.array([-p[1], p[0]]) / np.linalg.norm(p)
    logits = keys["k1"] * p[0] + keys["k2"] * p[1]
    best = keys["score"] == 1
    middle = (logits[best].min() + logits[~best].max()) / 2 * p / (p @ p)
    line = middle + np.outer([-9.0, 9.0], side)
    left.plot(*line.T, color=GREY, linestyle=":", label="separates best from others", scalex=False, scaley=False)
    for k, style in enumerate(STYLES):
        path = rows_of(tables["paths"], k)
        walk(left, path["p1"], path["p2"], style)
    left.plot(keys["k1"][~best], keys["k2"][~best], ".", color=ORANGE, markersize=5, label="other tokens", zorder=3)
    left.plot(
        keys["k1"][best],
        keys["k2"][best],
        "*",
        color=BLUE,
        markersize=10,
        markeredgecolor="k",
        label="best tokens",
        zorder=5,
    )
    plane(left, (-1.9, -1.6), (5.6, 3.3))
    left.legend(loc="upper right")
    speed(right, tables["distances"], [f"start ({number(x)}, 0)" for x in STARTS], (1000.0, 8e-4))
    right.legend(loc="lower left")
    right.set_ylim(bottom=1e-9)
    return drawing


def checks(tables: Tables) -> list[Check]:
    answer, ends, found = tables["answer"], tables["ends"], tables["distances"]
    cos = {t: 1 - found["one_minus_cos"][found["t"] == t] for t in (200, 1000)}
    return [
        Check.printed("max-margin direction, p₁", answer["p1"][0], "0.8446", OURS),
        Check.printed("max-margin direction, p₂", answer["p2"][0], "0.1711", OURS),
        Check.printed("half of its squared norm", answer["half_square"][0], "0.37134", OURS, KEYS),
        Check.printed("half of the squared norm with 3-D keys", answer["half_square_3d"][0], "0.31319", CODE, KEYS),
        Check("slope p₂/p₁ with 3-D keys", answer["slope_3d"][0], answer["p2"][0] / answer["p1"][0], 1e-9, OURS, KEYS),
        Check.printed("slack of the third nearest token", answer["third_slack"][0], "0.0071", OURS),
        Check("least cos after 200 steps", cos[200].min(), 0.9993, 5e-6, OURS, rule=Rule.AT_LEAST),
        Check.printed("least cos after 1,000 steps", cos[1000].min(), "0.99977", OURS, FLOOR),
        Check("1 − cos of the gradient flow at |p| = 100", answer["flow_100"][0], 1 - cos[1000][0], 5e-6, OURS, FLOOR),
        Check.printed("least cos after 1,000 steps with a floor", ends["cos_floor"].min(), "0.99994", OURS, FLOOR),
        Check.printed("largest |p| with a floor", ends["norm_floor"].max(), "26.1", OURS, FLOOR),
        Check.printed("least cos of plain descent (η = 1), 1,000 steps", ends["cos_plain"].min(), "0.981", OURS),
        Check.printed("largest cos of plain descent (η = 1), 1,000 steps", ends["cos_plain"].max(), "0.987", OURS),
    ]


FIGURE = Figure(
    name="1c",
    title="Three inputs: the best tokens are selected with the widest margin",
    caption=CAPTION,
    compute=compute,
    draw=draw,
    checks=checks,
)
