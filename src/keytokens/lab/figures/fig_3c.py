"""Fig 3(c): attention and probability during joint training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..claims.instances import joint
from .fig_3a import THIRD
from .figure import OURS, Check, Figure, Tables
from .joint import PUBLISHED, run_of
from .look import STYLES, sheet
from .tables import value_at

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CAPTION = """\
The run of Fig 3(a): attention on the tokens that will be selected, and the probability of the right labels, both as \
means over the three inputs. Attention first falls, while the head still points the wrong way, to its minimum after \
seven steps; then the head leads and the attention follows, and both go to 1."""
EXPECTED = {
    0: ("0.423", "0.525"),
    7: ("0.3816", "0.602"),
    20: ("0.526", "0.712"),
    40: ("0.860", "0.962"),
    60: ("0.967", "0.996"),
    90: ("0.996", "0.9998"),
}


def compute(small: bool) -> Tables:
    run = run_of(joint(THIRD), PUBLISHED, 100)
    return {"run": {name: run[name] for name in ("t", "attention", "probability")}}


def draw(tables: Tables) -> Drawing:
    drawing, (axes,) = sheet(1, 3.4)
    run = tables["run"]
    axes.plot(run["t"], run["attention"], **STYLES[0].all, markevery=10, label="attention on the selected tokens")
    axes.plot(run["t"], run["probability"], **STYLES[1].all, markevery=10, label="probability of the labels")
    axes.axhline(1, color="k", linewidth=0.8)
    axes.set_xlabel("steps t")
    axes.set_ylabel("mean over the inputs")
    axes.set_ylim(0.3, 1.05)
    axes.legend(loc="lower right")
    return drawing


def checks(tables: Tables) -> list[Check]:
    run = tables["run"]
    return [
        Check("step with the least attention", run["t"][np.argmin(run["attention"])], 7, 0, OURS),
        *(
            Check.printed(f"{name} after {t} steps", value_at(run, t, name), value, OURS)
            for t, both in EXPECTED.items()
            for name, value in zip(("attention", "probability"), both, strict=True)
        ),
    ]


FIGURE = Figure(
    name="3c",
    title="Head and attention together: who leads, who follows",
    caption=CAPTION,
    compute=compute,
    draw=draw,
    checks=checks,
)
