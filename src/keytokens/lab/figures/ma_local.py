"""Attention by a matrix on random problems: how W and (K, Q) saturate, and which max-margin matrix each goes to."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from .cross_runs import WIDE, standard_error, trained
from .figure import CODE, OURS, PAPER, Check, Figure, Rule, Table, Tables, table
from .look import BLUE, ORANGE, sheet
from .spheres import difference

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

CAPTION = """\
Six inputs of eight tokens in ten dimensions, tokens, queries and head uniform on the sphere, random labels, 100 \
problems; W, K and Q begin as linear layers do, steps of length 0.1 for each. Left: attention on the selected tokens, \
mean of all inputs. Right: cos to the max-margin matrix of the selected tokens, in the Frobenius norm (circles) and in \
the nuclear norm (squares). The paper's claim is that W goes to the first and (K, Q) to the second. The curves are \
means of all runs. The solutions here have rank 6 in the Frobenius norm and about 3 in the nuclear norm."""
READ = "Read off the published picture, to about 0.005; the data are of the same distribution, not the same numbers."
AT = (0, 25, 50, 75, 100, 150, 200, 300, 400, 600, 800, 1000, 1300, 1600, 2000)
NAMES = ("W trained", "(K, Q) trained")


@cache
def _tables(count: int) -> Tables:
    runs, ends = trained(count, 6, 8, 10, 0.1, AT)
    return {"runs": runs, "ends": ends, "means": _means(runs)}


def _means(runs: Table) -> Table:
    rows = []
    for factors in (0, 1):
        for t in AT:
            here = (runs["factors"] == factors) & (runs["t"] == t)
            columns = [runs[name][here] for name in ("attention", "to_frobenius", "to_nuclear")]
            rows.append((factors, t, *(x.mean() for x in columns), *(standard_error(x) for x in columns)))
    names = ("factors", "t", "attention", "to_frobenius", "to_nuclear", "attention_error", "f_error", "n_error")
    return table(**dict(zip(names, (np.array(column) for column in zip(*rows, strict=True)), strict=True)))


def compute(small: bool) -> Tables:
    return _tables(15 if small else 100)


def draw(tables: Tables) -> Drawing:
    drawing, (left, right) = sheet(2, 3.7)
    means = tables["means"]
    for factors, colour in ((0, BLUE), (1, ORANGE)):
        mine = {name: column[means["factors"] == factors] for name, column in means.items()}
        _line(left, mine, "attention", colour, "-o" if not factors else "--s", NAMES[factors])
        _line(right, mine, "to_frobenius", colour, "-o", f"{NAMES[factors]}, to Frobenius")
        _line(right, mine, "to_nuclear", colour, "--s", f"{NAMES[factors]}, to nuclear")
    left.set_ylabel("attention on the selected tokens")
    right.set_ylabel("cos to the max-margin matrix")
    right.set_ylim(0.0, 1.02)
    for panel in (left, right):
        panel.set_xlabel("steps t")
        panel.legend(loc="lower right")
    return drawing


def _line(axes: Axes, mine: Table, name: str, colour: str, form: str, label: str) -> None:
    axes.plot(mine["t"], mine[name], form, color=colour, label=label, markersize=4)


def checks(tables: Tables) -> list[Check]:
    runs, ends = tables["runs"], tables["ends"]
    count = int((ends["factors"] == 0).sum())
    local, best = (ends[name][ends["factors"] == 0].mean() for name in ("local", "best"))
    closer = [_closer(runs, factors) for factors in (0, 1)]
    return [
        Check(
            "runs of W that end nearer to the Frobenius solution, share", closer[0], 0.9, 0, PAPER, rule=Rule.AT_LEAST
        ),
        Check("runs of (K, Q) that end nearer to the nuclear one, share", closer[1], 0.9, 0, PAPER, rule=Rule.AT_LEAST),
        *(_mean(runs, 0, t, "attention", x, CODE) for t, x in ((100, 0.75), (200, 0.965), (400, 1.0))),
        _mean(runs, 1, 100, "attention", 1.0, CODE),
        _mean(runs, 0, 1000, "to_frobenius", 0.993, CODE),
        _mean(runs, 0, 1000, "to_nuclear", 0.862, CODE),
        _mean(runs, 0, 2000, "to_frobenius", 0.997, OURS),
        _mean(runs, 0, 2000, "to_nuclear", 0.864, OURS),
        _mean(runs, 1, 2000, "to_frobenius", 0.859, OURS),
        _mean(runs, 1, 2000, "to_nuclear", 0.982, OURS),
        Check("runs of W that are locally optimal, share", local, 1.0, difference(local, count, 1.0, 20), OURS),
        Check("runs of W that are globally optimal, share", best, 0.75, difference(best, count, 0.75, 20), OURS),
        Check("largest duality gap of a nuclear solution", ends["gap"].max(), 1e-8, 0, OURS, rule=Rule.AT_MOST),
        Check("least rank of a Frobenius solution", ends["frobenius_rank"].min(), 5, 0, OURS, rule=Rule.AT_LEAST),
    ]


def _closer(runs: Table, factors: int) -> float:
    end = (runs["factors"] == factors) & (runs["t"] == AT[-1])
    to_own, to_other = runs["to_frobenius"][end], runs["to_nuclear"][end]
    return float((to_own > to_other).mean() if not factors else (to_other > to_own).mean())


def _mean(runs: Table, factors: int, t: int, column: str, expected: float, source: str) -> Check:
    """A mean of our runs against one of others: 100 published runs, or 20 of ours by another road."""
    here = runs[column][(runs["factors"] == factors) & (runs["t"] == t)]
    words = {
        "attention": "mean attention",
        "to_frobenius": "mean cos to Frobenius",
        "to_nuclear": "mean cos to nuclear",
    }
    published = source == CODE
    wide = WIDE * standard_error(here, 100 if published else 20) + (5e-3 if published else 5e-4)
    name = f"{words[column]}, {NAMES[factors].removesuffix(' trained')}, t = {t}"
    return Check(name, here.mean(), expected, wide, source, READ if published else "")


FIGURE = Figure(
    name="matrix-local",
    title="Random problems: W goes to the Frobenius solution, (K, Q) to the nuclear one",
    caption=CAPTION,
    compute=compute,
    draw=draw,
    checks=checks,
)
