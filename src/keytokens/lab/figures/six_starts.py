"""Figures 1 and 4 of the max-margin paper: descent on p from six starts, on one input and on three."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...model.ragged import Vector
from ..claims.instances import GMM, LMM, STARTS, one_bag, three_bags
from ..descent.flow import flow
from ..descent.stack import Stack
from ..descent.steps import Normalised, Plain, Step
from ..descent.trajectory import log_spaced
from ..problems.geometry import misalignment
from ..problems.problem import Problem
from ..selection import local_optimum
from ..svm.problem import MarginProblem
from ..svm.solver import solve
from .figure import OURS, PAPER, Check, Sheet, Tables, figure, table
from .look import BLACK, BLUE, GREY, ORANGE, STYLES, Axes, Style, halfway, number, plane, ray, several_walks, tokens
from .notebooks import published_checks, published_table
from .tables import groupby, is_direction, records, states, value_at, walks, where

ON_ONE = [np.array([0.0, y]) for y in STARTS]
ON_THREE = [np.array([x, 0.0]) for x in STARTS]


def six(
    name: str, problem: Problem, starts: Sequence[Vector], limits: Sequence[Vector], last: int, dense: int
) -> Tables:
    """Paths of 200 steps of length 0.1, 1 - cos to the limit of each at log-spaced steps, and the published runs."""
    at = sorted({*log_spaced(last, dense)[1:].tolist(), 200})
    path = Stack.repeated(problem, 6).path(at, 0.1, np.array(starts))
    rows = (
        {"run": k, "t": t, "one_minus_cos": misalignment(p[k], limit), "norm": float(np.linalg.norm(p[k]))}
        for t, p in zip(at, path, strict=True)
        for k, limit in enumerate(limits)
    )
    return {
        "paths": walks(problem, Normalised(0.1), starts, 200),
        "distances": records(rows),
        "published": published_table(name),
    }


def draw_six(
    left: Axes, right: Axes, tables: Tables, starts: Sequence[Vector], anchor: tuple[float, float], bottom: float
) -> None:
    """The paths; and 1 - cos against steps, with the slope of 1/t² through a point."""
    several_walks(left, tables["paths"], STYLES)
    for ((k,), away), style in zip(groupby(tables["distances"], "run"), STYLES, strict=True):
        label = "start ({}, {})".format(*map(number, starts[k]))
        right.loglog(away["t"], away["one_minus_cos"], **style.all, markevery=4, label=label)
    t = np.array([anchor[0], float(tables["distances"]["t"].max())])
    right.loglog(t, anchor[1] * (t / anchor[0]) ** -2.0, color=GREY, linewidth=1, label="slope of 1/t²")
    right.set(xlabel="steps t", ylabel="1 − cos(p, max-margin direction)")
    right.legend(loc="lower left")
    right.set_ylim(bottom=bottom)


def _cos_at(tables: Tables, t: int) -> Vector:
    """Of the six runs."""
    return np.asarray(1 - where(tables["distances"], t=t)["one_minus_cos"])


def compute_1a(small: bool) -> Tables:
    problem = one_bag(0.9)
    best = local_optimum(problem.keys, problem.scores, [0])
    p, far = best.solution.p, flow(problem, ON_ONE[0], 1e4).state.p
    return {
        **six("1a", problem, ON_ONE, [GMM] * 6, 1000 if small else 10_000, 8),
        "answer": table(p1=p[0], p2=p[1], neighbours=best.neighbours.sum(), flow=misalignment(far, GMM)),
    }


def checks_1a(tables: Tables) -> list[Check]:
    answer, first = tables["answer"], where(tables["distances"], run=0)
    law = value_at(first, int(first["t"].max()), "one_minus_cos") * float(first["t"].max()) ** 2
    return [
        Check("starts that end in the max-margin direction", (_cos_at(tables, 1000) > 0.999).sum(), 6, 0, PAPER),
        *is_direction("max-margin direction", (answer["p1"][0], answer["p2"][0]), -10 / 101, 100 / 101),
        Check("tokens on the margin", answer["neighbours"][0], 1, 0, OURS),
        Check("1 − cos after 1,000 steps from (0, 1)", value_at(first, 1000, "one_minus_cos"), 2.3e-4, 5e-6, OURS),
        Check("t² (1 − cos) at the last step", law, 230, 5, OURS),
        Check("1 − cos of the gradient flow at |p| = 10,000", answer["flow"][0], 2.3e-8, 5e-10, OURS),
        *published_checks("1a", tables),
    ]


@figure(
    "1a", "One input: all starts go to the max-margin direction", compute_1a, checks_1a, sheet=Sheet(2, 4.2, (1, 1.35))
)
def draw_1a(tables: Tables, left: Axes, right: Axes) -> None:
    """One input with three tokens, their keys drawn as stars; the first has score 1, the others 0.9. The paper proves
    for one input whose other tokens share one score that gradient descent ends in the max-margin direction of the best
    token (dashed), wherever it starts. Left: six starts, steps of length 0.1, a marker every ten steps; dash-dotted the
    max-margin direction of the second token, which ties with the third and attracts nothing. Right (ours): how fast
    they turn. 1 − cos falls like 1/t². Published code runs in single precision and stops at |p| = 16; the runs drawn
    here are exact.
    """
    ray(left, GMM, Style(BLACK, "--", ""), "max-margin direction")
    ray(left, LMM, Style(BLUE, "-.", ""), "that of the second token")
    places = [(9.0, -2.0), (-8.0, 7.0), (6.0, -13.0)]
    tokens(left, one_bag(0.9).keys.rows, ["score 1", "score 0.9", "score 0.9"], places)
    plane(left, (-3.9, -2.6), (2.9, 7.2))
    left.legend(loc="upper right", fontsize=7)
    draw_six(left, right, tables, ON_ONE, (100.0, 0.04), 1e-7)


LOCAL_1B = np.array([y < -0.75 for y in STARTS])


def compute_1b(small: bool) -> Tables:
    problem = one_bag(0.0)
    found = local_optimum(problem.keys, problem.scores, [1])
    tied = local_optimum(one_bag(0.9).keys, one_bag(0.9).scores, [1])
    p, limits = found.solution.p, [LMM if local else GMM for local in LOCAL_1B]
    return {
        **six("1b", problem, ON_ONE, limits, 1000 if small else 10_000, 8),
        "answer": table(p1=p[0], p2=p[1], half_square=p @ p / 2, gap=found.gap, gap_in_1a=tied.gap),
    }


def checks_1b(tables: Tables) -> list[Check]:
    answer, cos = tables["answer"], _cos_at(tables, 1000)
    return [
        *is_direction("local direction", (answer["p1"][0], answer["p2"][0]), 1, 0),
        Check("its score above its neighbour's", answer["gap"][0], 0.9, 1e-12, OURS),
        Check("the same in Fig 1(a): a tie, not locally optimal", answer["gap_in_1a"][0], 0, 0, OURS),
        Check.at_least("least cos of the four upper starts, 1,000 steps", cos[~LOCAL_1B].min(), 0.9999, OURS),
        Check.at_least("least cos of the two lower starts, 1,000 steps", cos[LOCAL_1B].min(), 0.9996, OURS),
        *published_checks("1b", tables),
    ]


@figure("1b", "One input, three scores: two directions attract", compute_1b, checks_1b, sheet=Sheet(2, 4.0, (1.2, 1.2)))
def draw_1b(tables: Tables, left: Axes, right: Axes) -> None:
    """The same three keys, but now the third token has score 0. The token with score 0.9 outscores its only neighbour,
    so its max-margin direction (1, 0) is locally optimal, and the paper shows that such a direction attracts the starts
    near it. Left: four of the six starts end in the global direction (dashed), the two lowest in the local one
    (dash-dotted). Right (ours): how fast. In Fig 1(a) the scores of these two tokens tie, and (1, 0) attracts nothing.
    """
    ray(left, GMM, Style(BLACK, "--", ""), "global direction")
    ray(left, LMM, Style(GREY, "-.", ""), "local direction")
    places = [(-40.0, 4.0), (4.0, 7.0), (-44.0, -4.0)]
    tokens(left, one_bag(0.0).keys.rows, ["score 1", "score 0.9", "score 0"], places)
    plane(left, (-2.2, -1.9), (5.2, 5.2))
    left.legend(loc="upper right")
    draw_six(left, right, tables, ON_ONE, (100.0, 0.1), 1e-11)


KEYS = """\
The published objective 0.31319 comes from keys with the score as a third coordinate; with the two coordinates that \
the attention really uses it is 0.37134, in the same direction of the plane."""


def compute_1c(small: bool) -> Tables:
    problem = three_bags()
    solution = solve(MarginProblem.from_selection(problem.keys, [0, 0, 0]))
    p, keys = solution.p, problem.keys.rows
    wide = problem.keys.with_rows(np.column_stack([keys, problem.scores]))
    p_wide = solve(MarginProblem.from_selection(wide, [0, 0, 0])).p
    return {
        **six("1c", problem, ON_THREE, [p] * 6, 1000 if small else 10_000, 12),
        "keys": table(bag=problem.keys.bag, k1=keys[:, 0], k2=keys[:, 1], score=problem.scores),
        "answer": table(
            p1=p[0],
            p2=p[1],
            half_square=p @ p / 2,
            third_slack=np.sort(solution.slack)[2],
            slope_3d=p_wide[1] / p_wide[0],
            flow_100=misalignment(flow(problem, ON_THREE[0], 100.0).state.p, p),
        ),
    }


def checks_1c(tables: Tables) -> list[Check]:
    answer, early, late = tables["answer"], _cos_at(tables, 200), _cos_at(tables, 1000)
    return [
        Check.printed("max-margin direction, p₁", answer["p1"][0], "0.8446", OURS),
        Check.printed("max-margin direction, p₂", answer["p2"][0], "0.1711", OURS),
        Check.printed("half of its squared norm", answer["half_square"][0], "0.37134", OURS, KEYS),
        Check("slope p₂/p₁ with 3-D keys", answer["slope_3d"][0], answer["p2"][0] / answer["p1"][0], 1e-9, OURS, KEYS),
        Check.printed("slack of the third nearest token", answer["third_slack"][0], "0.0071", OURS),
        Check.at_least("least cos after 200 steps", early.min(), 0.999295, OURS),
        Check.printed("least cos after 1,000 steps", late.min(), "0.99977", OURS),
        Check("1 − cos of the gradient flow at |p| = 100", answer["flow_100"][0], 1 - late[0], 5e-6, OURS),
        *published_checks("1c", tables),
    ]


@figure(
    "1c",
    "Three inputs: the best tokens are selected with the widest margin",
    compute_1c,
    checks_1c,
    sheet=Sheet(2, 4.0, (1.25, 1)),
)
def draw_1c(tables: Tables, left: Axes, right: Axes) -> None:
    """Three inputs with seven tokens each, random keys as in the published notebook: stars are the best token of each
    input (score 1), dots the others (score 0.5). Left: from six starts descent with steps of length 0.1 turns towards
    the max-margin direction (dashed), whose dotted perpendicular parts best tokens from others. Right (ours): 1 − cos
    first falls through zero, since the paths cross the ray, and settles to the slope of 1/t² only late: one token
    misses the margin by 0.007 and pulls until |p| is several hundred.
    """
    answer, keys = tables["answer"], tables["keys"]
    p = np.array([answer["p1"][0], answer["p2"][0]])
    ray(left, p, Style(BLACK, "--", ""), "max-margin direction")
    points = np.column_stack([keys["k1"], keys["k2"]])
    best, others = points[keys["score"] == 1], points[keys["score"] < 1]
    line = halfway(best, others, p, [-9.0, 9.0])
    left.plot(*line.T, color=GREY, linestyle=":", label="separates best from others", scalex=False, scaley=False)
    left.plot(*others.T, ".", color=ORANGE, markersize=5, label="other tokens", zorder=3)
    star: Any = {"color": BLUE, "markersize": 10, "markeredgecolor": "k", "zorder": 5}
    left.plot(*best.T, "*", **star, label="best tokens")
    plane(left, (-1.9, -1.6), (5.6, 3.3))
    left.legend(loc="upper right")
    draw_six(left, right, tables, ON_THREE, (1000.0, 8e-4), 1e-9)


STEPS = (10, 20, 50, 100, 199)
EXPECTED = {
    "normalised": ("0.428", "0.752", "0.9931", "0.99998", "1.0000"),
    "plain": ("0.236", "0.405", "0.8177", "0.9338", "0.9719"),
}
RULES: dict[str, tuple[str, Step]] = {
    "normalised": ("normalised, steps of 0.1", Normalised(0.1)),
    "plain": ("plain, η = 1", Plain(1.0)),
}


def compute_4(small: bool) -> Tables:
    found: Tables = {"published": published_table("4b")}
    for name, (_, rule) in RULES.items():
        run = list(states(three_bags(), rule, np.zeros(2), 199).values())
        attention = [one.reading.attention[one.reading.best].mean() for one in run]
        found[name] = table(t=np.arange(200), attention=attention, norm=[one.norm for one in run])
    return found


def _curves(axes: Axes, tables: Tables, column: str) -> None:
    for (name, (label, _)), style in zip(RULES.items(), STYLES, strict=False):
        axes.plot(tables[name]["t"], tables[name][column], **style.all, markevery=20, label=label)
    axes.set_xlabel("steps t")


def checks_4a(tables: Tables) -> list[Check]:
    return [
        Check.printed(f"attention, {name}, {t} steps", value_at(tables[name], t, "attention"), value, OURS)
        for name, values in EXPECTED.items()
        for t, value in zip(STEPS, values, strict=True)
    ]


@figure("4a", "Attention concentrates: normalised and plain steps", compute_4, checks_4a, sheet=Sheet(height=3.4))
def draw_4a(tables: Tables, axes: Axes) -> None:
    """Data of Fig 1(c), start at p = 0: attention on the best token, mean over the three inputs. Normalised steps of
    length 0.1 select within a hundred steps; plain gradient descent with η = 1 slows down, because its gradient shrinks
    as fast as the attention concentrates.
    """
    _curves(axes, tables, "attention")
    axes.axhline(1, color="k", linewidth=0.8)
    axes.set(ylabel="attention on the best tokens", ylim=(0, 1.05))
    axes.legend(loc="lower right")


def checks_4b(tables: Tables) -> list[Check]:
    known = {("normalised", 100): "9.93", ("normalised", 199): "19.79", ("plain", 100): "3.16", ("plain", 199): "3.85"}
    return [
        *(
            Check.printed(f"|p|, {rule}, {t} steps", value_at(tables[rule], t, "norm"), value, OURS)
            for (rule, t), value in known.items()
        ),
        *published_checks("4b", tables),
    ]


@figure("4b", "The norm of p grows for ever", compute_4, checks_4b, sheet=Sheet(height=3.4))
def draw_4b(tables: Tables, axes: Axes) -> None:
    """The runs of Fig 4(a): the norm of p. It grows by nearly 0.1 a step under normalised steps, and like the logarithm
    of the time under plain ones; in both cases for ever, since the loss has no minimum.
    """
    _curves(axes, tables, "norm")
    axes.set(ylabel="|p|", ylim=(0, 21))
    axes.legend(loc="upper left")
