"""Fig 4(a): how fast attention concentrates, with normalised and with plain steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..claims.instances import three_bags
from ..descent.steps import Normalised, Plain, Step
from .figure import OURS, Check, Figure, Table, Tables, table
from .look import STYLES, sheet
from .tables import states, value_at

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CAPTION = """\
Data of Fig 1(c), start at p = 0: attention on the best token, mean over the three inputs. Normalised steps of \
length 0.1 select within a hundred steps; plain gradient descent with η = 1 slows down, because its gradient shrinks \
as fast as the attention concentrates."""
STEPS = (10, 20, 50, 100, 199)
EXPECTED = {
    "normalised": ("0.428", "0.752", "0.9931", "0.99998", "1.0000"),
    "plain": ("0.236", "0.405", "0.8177", "0.9338", "0.9719"),
}
RULES: dict[str, Step] = {"normalised": Normalised(0.1), "floor": Normalised(0.1, floor=1e-12), "plain": Plain(1.0)}


def runs(*names: str) -> dict[str, Table]:
    """Attention on the best tokens and the norm of p, step by step, for some of the step rules."""
    found = {name: list(states(three_bags(), RULES[name], np.zeros(2), 199).values()) for name in names}
    return {
        name: table(
            t=[one.t for one in seen],
            attention=[one.reading.attention[one.reading.best].mean() for one in seen],
            norm=[one.norm for one in seen],
        )
        for name, seen in found.items()
    }


def compute(small: bool) -> Tables:
    return {name: {key: run[key] for key in ("t", "attention")} for name, run in runs("normalised", "plain").items()}


def draw(tables: Tables) -> Drawing:
    drawing, (axes,) = sheet(1, 3.4)
    for (name, run), style in zip(tables.items(), STYLES, strict=False):
        label = "normalised, steps of 0.1" if name == "normalised" else "plain, η = 1"
        axes.plot(run["t"], run["attention"], **style.all, markevery=20, label=label)
    axes.axhline(1, color="k", linewidth=0.8)
    axes.set_xlabel("steps t")
    axes.set_ylabel("attention on the best tokens")
    axes.set_ylim(0, 1.05)
    axes.legend(loc="lower right")
    return drawing


def checks(tables: Tables) -> list[Check]:
    return [
        Check.printed(f"attention, {name}, {t} steps", value_at(tables[name], t, "attention"), value, OURS)
        for name, values in EXPECTED.items()
        for t, value in zip(STEPS, values, strict=True)
    ]


FIGURE = Figure(
    name="4a",
    title="Attention concentrates: normalised and plain steps",
    caption=CAPTION,
    compute=compute,
    draw=draw,
    checks=checks,
)
