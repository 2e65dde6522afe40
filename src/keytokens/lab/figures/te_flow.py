"""Trained embeddings: gradient flow on p goes to infinity along the max-margin direction of what it selects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .figure import OURS, PAPER, Check, Figure, Rule, Tables, table
from .look import BLACK, STYLES, sheet
from .simulations import flow_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CAPTION = """\
Planted data (100 documents of 6 tokens, 8 important and 20 irrelevant ones, d = 512), one step of η = 200 on the \
embeddings, then gradient flow on p. The paper states that p diverges, that every document selects its completely \
positive or negative token, and that the direction maximises the margin of that selection. Left (ours): the \
distance to the solver's direction falls like 1/|p|², that of the margin like 1/|p|. Right: the least attention on \
the important token, and what is left of the loss above its limit."""
NORMS = (*(8.0 * 2**k for k in range(7)), 400.0, 1000.0)
PRINTED = {
    8: ".9855 .82",
    16: ".9938 .914",
    32: ".9977 .957",
    64: ".9993 .978",
    128: ".9998 .989",
    256: ".99995 .9946",
    400: ".99998 .9965",
}
SEEDS = """\
The table that it is compared with is of another random draw of the same model: what is left to 1 agrees within a \
factor of 2, not in its digits."""


def compute(small: bool) -> Tables:
    return {"flow": table(**flow_table(sorted(NORMS)))}


def draw(tables: Tables) -> Drawing:
    drawing, (left, right) = sheet(2, 3.4)
    flow = tables["flow"]
    left.loglog(flow["norm"], flow["misalignment"], **STYLES[0].all, label="1 − cos(p, p*)")
    left.loglog(flow["norm"], 1 - flow["margin_ratio"], **STYLES[1].all, label="1 − margin / best margin")
    left.loglog(
        flow["norm"],
        flow["misalignment"][-1] * (flow["norm"][-1] / flow["norm"]) ** 2,
        color=BLACK,
        linewidth=0.8,
        label="slopes −2 and −1",
    )
    left.loglog(
        flow["norm"], (1 - flow["margin_ratio"][-1]) * flow["norm"][-1] / flow["norm"], color=BLACK, linewidth=0.8
    )
    left.set_xlabel("|p|")
    left.legend()
    right.semilogy(flow["norm"], np.maximum(1 - flow["attention"], 1e-16), **STYLES[2].all, label="1 − least attention")
    right.semilogy(flow["norm"], np.exp(np.maximum(flow["excess"], -40)), **STYLES[3].all, label="loss above its limit")
    right.set_xlim(0, 140)
    right.set_ylim(1e-16, 1)
    right.set_xlabel("|p|")
    right.legend()
    return drawing


def checks(tables: Tables) -> list[Check]:
    flow = tables["flow"]
    far = flow["norm"] >= 32
    slope = float(np.polyfit(np.log(flow["norm"][far]), np.log(flow["misalignment"][far]), 1)[0])
    margins = float(np.polyfit(np.log(flow["norm"][far]), np.log(1 - flow["margin_ratio"][far]), 1)[0])
    at = {round(float(norm)): k for k, norm in enumerate(flow["norm"])}
    beside = [
        Check(
            f"{name} at |p| = {norm}",
            float(flow[column][at[norm]]),
            float(value),
            (1 - float(value)) + 1e-5,
            OURS,
            SEEDS,
        )
        for norm, values in PRINTED.items()
        for (name, column), value in zip(
            (("cos", "cosine"), ("margin ratio", "margin_ratio")), values.split(), strict=True
        )
    ]
    pace = flow["pace"]
    return [
        Check("P5: largest rise of the loss", float(np.diff(flow["loss"]).max()), 0.0, 1e-15, OURS, rule=Rule.AT_MOST),
        Check("P5: last loss minus its limit", float(flow["loss"][-1] - flow["limit"][-1]), 0.0, 1e-12, OURS),
        Check(
            "P6: least attention on the important token at |p| = 32",
            float(flow["attention"][at[32]]),
            0.9999,
            0,
            OURS,
            rule=Rule.AT_LEAST,
        ),
        Check("P7: exponent of 1 − cos in |p|", slope, -2.0, 0.15, OURS),
        Check("P8: exponent of the margin's distance", margins, -1.0, 0.1, OURS),
        Check("P8: margin over the best one, at the end", float(flow["margin_ratio"][-1]), 1.0, 0.003, PAPER),
        Check("P9: |p| over |p*| log t, at the end", float(pace[-1]), 1.0, 0.05, OURS),
        *beside,
    ]


FIGURE = Figure(
    name="flow",
    title="Gradient flow on p: selection with maximum margin",
    caption=CAPTION,
    compute=compute,
    draw=draw,
    checks=checks,
)
