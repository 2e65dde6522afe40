"""Figures 9 and 10 of the max-margin paper: how descent ends on a thousand random problems for each dimension."""

from __future__ import annotations

from functools import cache

import numpy as np

from ...model.ragged import Vector
from ...training.loop import Status, run
from ..claims.instances import spheres
from ..descent.flow import Flow
from ..descent.stack import Stack, on_span
from ..endings import Endings
from .figure import OURS, PAPER, Check, Sheet, Table, Tables, figure, table
from .look import BLACK, BLUE, GREEN, GREY, ORANGE, RED, STYLES, Axes
from .notebooks import published_checks, published_table
from .tables import difference, endings, groupby, stacked, summarised, where

DIMENSIONS = (2, 5, 10, 100, 300, 500)
STEPS = 1000
LONGER = 9000  # more steps for runs that have not settled
FAR = 2e4
SIZES = {True: 60, False: 1000}  # problems for each dimension, in small and as drawn


@cache
def _ended(d: int, count: int) -> tuple[Stack, Vector, Endings]:
    """Normalised descent from p = 0, steps of length 1."""
    trials = Stack.of(on_span(spheres(seed, d)) for seed in range(count))
    p = trials.descend(STEPS)
    return trials, p, Endings.of(trials, p)


@cache
def outcomes(count: int) -> Table:
    """One row a run."""
    return stacked(_outcomes(d, count) for d in DIMENSIONS)


def _outcomes(d: int, count: int) -> Table:
    _, p, ends = _ended(d, count)
    runs = endings(ends, d=d, seed=np.arange(count), norm=np.linalg.norm(p, axis=1))
    return {**runs, "separable": ends.separable, "gap": ends.gap, "one_minus_cos": ends.distance}


def leftovers(d: int, count: int) -> Table:
    """The runs that are saturated on a selection that is not locally optimal, and what lies ahead of them.

    The gradient flow says whether it is a minimum of the loss; the others are continued, to ten times as many steps.
    """
    trials, p, ends = _ended(d, count)
    left = np.flatnonzero(ends.saturated & ~ends.is_local)
    ahead = [run(Flow(trials[int(k)], FAR, tolerance=1e-6, most_evaluations=500), p[k], 100) for k in left]
    minimum = np.array([outcome.status is Status.STATIONARY for outcome in ahead], np.bool_)
    norm, gap = np.array([outcome.state.norm for outcome in ahead], np.float64), ends.gap[left]
    moving = left[~minimum]
    if len(moving):
        some = Stack(trials.keys[moving], trials.scores[moving], trials.loss)
        later = some.descend(LONGER, start=p[moving])
        norm[~minimum], gap[~minimum] = np.linalg.norm(later, axis=1), Endings.of(some, later).gap
    start = np.linalg.norm(p[left], axis=1)
    return table(d=d, seed=left, norm=start, gap=ends.gap[left], in_minimum=minimum, norm_later=norm, gap_later=gap)


FALLS = "A fall counts if it is larger than 3.5 standard deviations of the difference."
LEFT = """\
From the end of each of these runs the gradient flow was followed; where it found no minimum of the loss, descent went \
on to 10,000 steps. The table of left-over runs has them all."""
# of 1,000 trials each, an independent run of ours with other seeds
EXPECTED = {
    2: (699, 290, 105, 11, 127),
    5: (50, 943, 205, 7, 392),
    10: (1, 997, 354, 2, 980),
    100: (0, 999, 935, 1, 1000),
    300: (0, 1000, 991, 0, 1000),
    500: (0, 1000, 998, 0, 1000),
}
SAID = {
    "unsaturated": "not saturated",
    "local": "locally optimal",
    "best": "globally optimal",
    "not_local": "saturated, not locally optimal",
    "separable": "best tokens separable",
}


def compute_9a(small: bool) -> Tables:
    count = SIZES[small]
    runs = outcomes(count)
    published = {} if small else {"published": published_table("9a")}
    return {
        "runs": runs,
        "bars": summarised(runs, ["d"], bars),
        "left": stacked(leftovers(d, count) for d in DIMENSIONS),
        **published,
    }


def bars(runs: Table) -> dict[str, float]:
    """Counts for one dimension, and the mean cos of the locally optimal runs."""
    flags = {
        "unsaturated": ~runs["saturated"],
        "local": runs["local"],
        "best": runs["best"],
        "not_local": runs["saturated"] & ~runs["local"],
        "separable": runs["separable"],
    }
    cos = 1 - runs["one_minus_cos"][runs["local"]]
    counts = {name: int(flag.sum()) for name, flag in flags.items()}
    return {"trials": len(runs["d"]), **counts, "cos": cos.mean()}


def checks_9a(tables: Tables) -> list[Check]:
    found, left = tables["bars"], tables["left"]
    settled = left["in_minimum"].astype(bool) | (left["gap_later"] > 0)
    trials = found["trials"]
    local = (found["local"] / trials)[found["d"] >= 10].min()
    return [
        Check.at_least("not saturated at d = 2, share", found["unsaturated"][0] / trials[0], 0.5, PAPER),
        Check.at_least("locally optimal at d ≥ 10, least share", local, 0.95, PAPER),
        Check("steps of d at which the global share falls", _falls(found), 0, 0, PAPER, FALLS),
        *(check for k, d in enumerate(EXPECTED) for check in _shares(found, k, d)),
        Check("mean cos to a local optimum, farthest from 1 over d", found["cos"].min(), 1, 1e-3, OURS),
        Check("left-over runs with neither a minimum nor a local optimum ahead", (~settled).sum(), 0, 0, OURS, LEFT),
        *(published_checks("9a", tables) if "published" in tables else ()),
    ]


def _falls(found: Table) -> int:
    """Steps of d at which the share of the global direction falls by more than lot explains."""
    share, trials = (found["best"] / found["trials"]).tolist(), found["trials"].tolist()
    steps = range(len(share) - 1)
    return sum(share[k] - share[k + 1] > difference(share[k], trials[k], share[k + 1], trials[k + 1]) for k in steps)


def _shares(found: Table, k: int, d: int) -> list[Check]:
    n, checked = int(found["trials"][k]), []
    for (name, said), count in zip(SAID.items(), EXPECTED[d], strict=True):
        share, expected = found[name][k] / n, count / 1000
        checked.append(Check(f"share at d = {d}: {said}", share, expected, difference(share, n, expected, 1000), OURS))
    return checked


@figure("9a", "Random problems: which direction wins, by dimension", compute_9a, checks_9a, sheet=Sheet(height=4.0))
def draw_9a(tables: Tables, axes: Axes) -> None:
    """Four inputs with six tokens, keys and head uniform on the sphere, random labels; 1,000 problems for each
    dimension d, normalised descent from p = 0, 1,000 steps of length 1. The paper reports that in the plane most runs
    do not saturate (attention on the selected tokens below 1 − 1e-5), that for larger d nearly all end in a locally
    optimal direction, and that the share of the global one grows with d; it prints no heights. The bars are ours. The
    few saturated runs whose selection is not locally optimal are no exceptions to the theory: ahead of each lies a
    minimum of the loss, far out and at an attention above 1 − 1e-5, or, after more steps, a locally optimal selection.
    """
    found = tables["bars"]
    x, bottom = np.arange(len(DIMENSIONS)), np.zeros(len(DIMENSIONS))
    parts = [
        ("best", found["best"], GREEN, ".."),
        ("local", found["local"] - found["best"], BLUE, "//"),
        ("not_local", found["not_local"], GREY, ""),
        ("unsaturated", found["unsaturated"], RED, "xx"),
    ]
    labels = SAID | {"local": "locally, not globally optimal"}
    for name, height, colour, hatch in parts:
        share = height / found["trials"]
        axes.bar(x, share, 0.7, bottom, color=colour, hatch=hatch, edgecolor="white", linewidth=0, label=labels[name])
        for at, low, part, count in zip(x, bottom, share, height, strict=True):
            if part > 0.04:
                box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "alpha": 0.85, "edgecolor": "none"}
                axes.text(float(at), low + part / 2, str(count), ha="center", va="center", fontsize=8, bbox=box)
        bottom = bottom + share
    axes.set_xticks(x, [str(d) for d in DIMENSIONS])
    axes.grid(axis="x", visible=False)
    axes.set(xlabel="dimension d", ylabel="share of the runs", ylim=(0, 1))
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.01), ncols=2)


PLANE = """\
Negative values in the plane belong to runs around a minimum of the loss that lies far out (Fig 9(a)); they need not \
be near zero and do not shrink with more steps."""
BIN = 0.01


def compute_gaps(small: bool) -> Tables:
    """Of all runs that saturate, by dimension, and in each from the smallest gap on."""
    saturated = where(outcomes(SIZES[small]), saturated=True)
    order = np.lexsort((saturated["gap"], saturated["d"]))
    return {"gaps": {name: saturated[name][order] for name in ("d", "gap", "one_minus_cos")}}


def checks_9b(tables: Tables) -> list[Check]:
    gaps = tables["gaps"]
    negative, away = gaps["gap"] < 0, gaps["one_minus_cos"]
    plane = gaps["d"] == DIMENSIONS[0]
    share, in_plane = float(negative.mean()), float(negative[plane].mean())
    few = difference(in_plane, int(plane.sum()), 0.037, 301)
    return [
        Check.at_most("share of negative gaps", share, 0.01, PAPER),
        Check.at_least("mean cos of the runs with a negative gap", 1 - away[negative].mean(), 0.99, PAPER),
        Check("share of negative gaps", share, 0.004, difference(share, len(negative), 0.004, 5250), OURS),
        Check("share of negative gaps at d = 2", in_plane, 0.037, few, OURS, PLANE),
    ]


@figure("9b", "Random problems: the score gap to the margin", compute_gaps, checks_9b, sheet=Sheet(height=3.4))
def draw_9b(tables: Tables, axes: Axes) -> None:
    """The runs of Fig 9(a) that saturate, all dimensions together: how far the selected tokens outscore the tokens on
    their margin, at the least (bins of 0.01, counts on a logarithmic scale). Where it is positive the selection is
    locally optimal. The paper reports a negative value in fewer than 1% of the runs, near zero, and a correlation with
    the max-margin direction above 0.99 on average even there. Over all dimensions our runs agree; in the plane alone
    the share is some percent, and the values are not all small (ours).
    """
    gap = tables["gaps"]["gap"]
    edges = BIN * np.arange(np.floor(gap.min() / BIN), np.ceil(gap.max() / BIN) + 1)
    for part, colour, label in ((gap < 0, ORANGE, "not locally optimal"), (gap >= 0, BLUE, "locally optimal")):
        axes.hist(gap[part], edges.tolist(), color=colour, label=label)
    axes.axvline(0, color=BLACK, linewidth=1)
    axes.set(yscale="log", xlabel="least score gap to a token on the margin", ylabel="runs")
    axes.legend(loc="upper right")


# share of the saturated runs, and how many they are, in an independent run of ours with other seeds
KNOWN = {2: (11 / 301, 301), 5: (7 / 950, 950), 10: (2 / 999, 999), 100: (1 / 1000, 1000), 300: (0.0, 1000)}


def checks_10(tables: Tables) -> list[Check]:
    gaps = {d: curve["gap"] for (d,), curve in groupby(tables["gaps"], "d")}
    below = {d: float((gap < 0).mean()) for d, gap in gaps.items()}
    median = [float(np.median(gap)) for gap in gaps.values()]
    return [
        *(
            Check(f"share below zero, d = {d}", below[d], share, difference(below[d], len(gaps[d]), share, n), OURS)
            for d, (share, n) in KNOWN.items()
        ),
        Check("steps of d ≥ 5 at which the median gap grows", (np.diff(median[1:]) > 0).sum(), 0, 0, OURS),
    ]


@figure("10", "Random problems: score gaps by dimension", compute_gaps, checks_10, sheet=Sheet(height=3.6))
def draw_10(tables: Tables, axes: Axes) -> None:
    """The numbers of Fig 9(b) as distribution functions, one for each dimension (ours): the share of the saturated runs
    whose least score gap is at most x. At 0 the curves are the share of the selections that are not locally optimal;
    only the plane is visibly above zero there. The scale of x is linear between −0.01 and 0.01 and logarithmic outside.
    In high dimension the scores of unit vectors are small, and so are the gaps.
    """
    for ((d,), curve), style in zip(groupby(tables["gaps"], "d"), STYLES, strict=True):
        gap = curve["gap"]
        share = np.arange(1, len(gap) + 1) / len(gap)
        axes.step(gap, share, where="post", **style.all, markevery=max(1, len(gap) // 6), label=f"d = {d}")
    axes.axvline(0, color=BLACK, linewidth=1)
    axes.set_xscale("symlog", linthresh=0.01)
    axes.set_xlim(-1, 2)
    axes.set_xticks([-1, -0.1, -0.01, 0, 0.01, 0.1, 1], ["−1", "−0.1", "−0.01", "0", "0.01", "0.1", "1"])
    axes.set(
        ylim=(0, 1.02),
        xlabel="least score gap to a token on the margin, x",
        ylabel="share of the saturated runs with a gap ≤ x",
    )
    axes.legend(loc="upper left")
