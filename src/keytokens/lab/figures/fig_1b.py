"""Fig 1(b): one input, three scores: the start decides between the global and a local direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..claims.instances import GMM, LMM, STARTS, one_bag
from ..descent.steps import Normalised
from ..descent.trajectory import log_spaced
from ..problems.trials import Trials
from ..selection import local_optimum
from .figure import OURS, Check, Figure, Rule, Tables, table
from .look import BLACK, GREY, STYLES, Style, number, plane, ray, sheet, tokens, walk
from .tables import cosine, distances, rows_of, speed, walks

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CAPTION = """\
The same three keys, but now the third token has score 0. The token with score 0.9 outscores its only neighbour, so \
its max-margin direction (1, 0) is locally optimal, and the paper shows that such a direction attracts the starts \
near it. Left: four of the six starts end in the global direction (dashed), the two lowest in the local one \
(dash-dotted). Right (ours): how fast. In Fig 1(a) the scores of these two tokens tie, and (1, 0) attracts nothing."""
FLOOR = """\
cos ≥ 0.9999 (global) and ≥ 0.9996 (local) describe runs with 1e-12 added to the length of the gradient, which stop \
at |p| = 30; without that floor both are nearer to 1."""
LOCAL = np.array([y < -0.75 for y in STARTS])


def compute(small: bool) -> Tables:
    problem, starts = one_bag(0.0), [np.array([0.0, y]) for y in STARTS]
    found = local_optimum(problem.keys, problem.scores, [1])
    tied = local_optimum(one_bag(0.9).keys, one_bag(0.9).scores, [1])
    limits = [LMM if local else GMM for local in LOCAL]
    runs, begin = Trials.repeated(problem, 6), np.array(starts)
    floored = runs.descend(1000, 0.1, start=begin, floor=1e-12)
    plain = runs.descend(2_000 if small else 20_000, 1.0, start=begin, plain=True)
    return {
        "paths": walks(problem, Normalised(0.1), starts, 200),
        "distances": distances(problem, starts, limits, log_spaced(1000 if small else 10_000, 8)[1:].tolist()),
        "ends": table(
            start=STARTS,
            cos_floor=list(map(cosine, floored, limits)),
            cos_global_plain=[cosine(p, GMM) for p in plain],
            cos_local_plain=[cosine(p, LMM) for p in plain],
        ),
        "answer": table(
            p1=found.solution.p[:1],
            p2=found.solution.p[1:],
            half_square=[found.solution.p @ found.solution.p / 2],
            gap=[found.gap],
            gap_in_1a=[tied.gap],
        ),
    }


def draw(tables: Tables) -> Drawing:
    drawing, (left, right) = sheet(2, 4.0, (1.2, 1.2))
    ray(left, GMM, Style(BLACK, "--", ""), "global direction")
    ray(left, LMM, Style(GREY, "-.", ""), "local direction")
    for k, style in enumerate(STYLES):
        path = rows_of(tables["paths"], k)
        walk(left, path["p1"], path["p2"], style)
    places = [(-40.0, 4.0), (4.0, 7.0), (-44.0, -4.0)]
    tokens(left, one_bag(0.0).keys.rows, ["score 1", "score 0.9", "score 0"], places)
    plane(left, (-2.2, -1.9), (5.2, 5.2))
    left.legend(loc="upper right")
    speed(right, tables["distances"], [f"start (0, {number(y)})" for y in STARTS], (100.0, 0.1))
    right.legend(loc="lower left")
    right.set_ylim(bottom=1e-11)
    return drawing


def checks(tables: Tables) -> list[Check]:
    ends, answer = tables["ends"], tables["answer"]
    cos = 1 - tables["distances"]["one_minus_cos"][tables["distances"]["t"] == 1000]
    plain_local = ends["cos_local_plain"] > ends["cos_global_plain"]
    return [
        Check("local direction, p₁", answer["p1"][0], 1, 1e-9, OURS),
        Check("local direction, p₂", answer["p2"][0], 0, 1e-9, OURS),
        Check("half of its squared norm", answer["half_square"][0], 0.5, 1e-9, OURS),
        Check("its score above its neighbour's", answer["gap"][0], 0.9, 1e-12, OURS),
        Check("the same in Fig 1(a): a tie, not locally optimal", answer["gap_in_1a"][0], 0, 0, OURS),
        Check(
            "least cos of the four upper starts, 1,000 steps", cos[~LOCAL].min(), 0.9999, 0, OURS, rule=Rule.AT_LEAST
        ),
        Check("least cos of the two lower starts, 1,000 steps", cos[LOCAL].min(), 0.9996, 0, OURS, rule=Rule.AT_LEAST),
        Check.printed("upper starts with a floor, least cos", ends["cos_floor"][~LOCAL].min(), "0.9999", OURS, FLOOR),
        Check.printed("lower starts with a floor, least cos", ends["cos_floor"][LOCAL].min(), "0.9996", OURS, FLOOR),
        Check("starts that plain descent (η = 1) takes elsewhere", (plain_local != LOCAL).sum(), 0, 0, OURS),
    ]


FIGURE = Figure(
    name="1b",
    title="One input, three scores: two directions attract",
    caption=CAPTION,
    compute=compute,
    draw=draw,
    checks=checks,
)
