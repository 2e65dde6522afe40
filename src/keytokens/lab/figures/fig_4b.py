"""Fig 4(b): how fast the norm of p grows, with normalised and with plain steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .fig_4a import runs
from .figure import OURS, Check, Figure, Rule, Tables
from .look import STYLES, sheet
from .tables import value_at

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CAPTION = """\
The runs of Fig 4(a): the norm of p. It grows by nearly 0.1 a step under normalised steps, and like the logarithm of \
the time under plain ones; in both cases for ever, since the loss has no minimum."""
FLOOR = """\
19.75 at 199 steps is the value with 1e-12 added to the length of the gradient, which is only 1e-10 there; the exact \
value is 19.79."""


def compute(small: bool) -> Tables:
    found = runs("normalised", "floor", "plain")
    return {name: {key: run[key] for key in ("t", "norm")} for name, run in found.items()}


def draw(tables: Tables) -> Drawing:
    drawing, (axes,) = sheet(1, 3.4)
    for name, label, style in (("normalised", "normalised, steps of 0.1", 0), ("plain", "plain, η = 1", 1)):
        run = tables[name]
        axes.plot(run["t"], run["norm"], **STYLES[style].all, markevery=20, label=label)
    axes.set_xlabel("steps t")
    axes.set_ylabel("|p|")
    axes.set_ylim(0, 21)
    axes.legend(loc="upper left")
    return drawing


def checks(tables: Tables) -> list[Check]:
    norm = {(name, t): value_at(run, t, "norm") for name, run in tables.items() for t in (100, 199)}
    lost = norm["normalised", 199] - norm["floor", 199]
    return [
        Check.printed("|p|, normalised, 100 steps", norm["normalised", 100], "9.93", OURS),
        Check.printed("|p|, normalised, 199 steps", norm["normalised", 199], "19.79", OURS, FLOOR),
        Check.printed("|p|, normalised with a floor, 199 steps", norm["floor", 199], "19.75", OURS, FLOOR),
        Check("what the floor takes away in 199 steps", lost, 0.1, 0, OURS, FLOOR, rule=Rule.AT_MOST),
        Check.printed("|p|, plain, 100 steps", norm["plain", 100], "3.16", OURS),
        Check.printed("|p|, plain, 199 steps", norm["plain", 199], "3.85", OURS),
    ]


FIGURE = Figure(
    name="4b",
    title="The norm of p grows for ever",
    caption=CAPTION,
    compute=compute,
    draw=draw,
    checks=checks,
)
