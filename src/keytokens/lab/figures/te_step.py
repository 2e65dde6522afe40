"""Trained embeddings: one gradient step moves each token along v by half its average signed frequency."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..claims.embeddings.data import planted
from ..claims.embeddings.stages import embedding_gradient, gaussian_start, loss
from .figure import OURS, PAPER, Check, Figure, Rule, Tables, table
from .look import BLACK, STYLES, sheet
from .simulations import one_step_table, token_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CAPTION = """\
Planted data: completely positive, completely negative and irrelevant tokens. The paper states that one gradient \
step aligns each embedding with v in proportion to the token's average signed frequency. Left: values after a step \
of η = 200 in dimension 1024 lie on a line of slope η/2, with the noise of the random start. Right (ours): what is \
left over, per frequency of the token, falls like 1/√d."""
ETA = 200.0


def compute(small: bool) -> Tables:
    dims = (64, 256, 1024) if small else (64, 256, 1024, 4096, 16384)
    tokens = token_table(ETA)
    return {
        "tokens": table(**{name: tokens[name] for name in ("kind", "alpha", "b0", "b1")}),
        "dimensions": table(**one_step_table(dims)),
        "gradient": table(worst_difference=[_gradient_error()]),
    }


def _gradient_error() -> float:
    """The largest difference between dL/dE and central differences of L, entry by entry."""
    rng = np.random.default_rng(0)
    data = planted(rng, 12, 5, 2, 2, 4)
    start = gaussian_start(rng, data.V, 6)
    found, h = embedding_gradient(data, start), 1e-5

    def moved(place: tuple[int, ...], by: float) -> float:
        E = start.E.copy()
        E[place] += by
        return loss(data, E, start.p, start.v)

    central = np.array([(moved(i, h) - moved(i, -h)) / (2 * h) for i in np.ndindex(start.E.shape)])
    return float(np.abs(found.ravel() - central).max())


def draw(tables: Tables) -> Drawing:
    drawing, (left, right) = sheet(2, 3.4)
    tokens, dims = tables["tokens"], tables["dimensions"]
    for kind, name, style in zip((1, -1, 0), ("positive", "negative", "irrelevant"), STYLES, strict=False):
        mine = tokens["kind"] == kind
        left.plot(tokens["alpha"][mine], tokens["b1"][mine], style.marker, color=style.color, label=name)
    ends = np.array([tokens["alpha"].min(), tokens["alpha"].max()])
    left.plot(ends, ETA / 2 * ends, color=BLACK, linewidth=1, label="slope η/2")
    left.set_xlabel("average signed frequency α of a token")
    left.set_ylabel("value v·E after the step")
    left.legend()
    right.loglog(dims["d"], dims["error"], **STYLES[0].all, label="largest error / frequency")
    right.loglog(
        dims["d"], dims["error"][0] * np.sqrt(dims["d"][0] / dims["d"]), color=BLACK, linewidth=1, label="1/√d"
    )
    right.set_xlabel("dimension d")
    right.set_ylabel("distance from the leading term")
    right.legend()
    return drawing


def checks(tables: Tables) -> list[Check]:
    dims, tokens = tables["dimensions"], tables["tokens"]
    wide = dims["d"] >= 1024
    gain = (tokens["b1"] - tokens["b0"]) / ETA
    law = float(np.polyfit(np.log(dims["d"]), np.log(dims["error"]), 1)[0])
    return [
        Check(
            "P1: gradient against differences",
            tables["gradient"]["worst_difference"][0],
            1e-8,
            0,
            OURS,
            rule=Rule.AT_MOST,
        ),
        Check(
            "P2: third singular value of E₁ − E₀, over the first",
            dims["third"].max(),
            1e-12,
            0,
            PAPER,
            rule=Rule.AT_MOST,
        ),
        *(
            Check(f"P3: slope on α, d = {d}", slope, 0.5, 0.01, PAPER)
            for d, slope in zip(dims["d"][wide], dims["slope"][wide], strict=True)
        ),
        Check("P3: slope on α in the picture", np.polyfit(tokens["alpha"], gain, 1)[0], 0.5, 0.01, PAPER),
        Check("P4: error √d, smallest", dims["scaled"].min(), 0.85, 0, OURS, rule=Rule.AT_LEAST),
        Check("P4: error √d, largest", dims["scaled"].max(), 1.25, 0, OURS, rule=Rule.AT_MOST),
        Check("P4: exponent of the error in d", law, -0.5, 0.06, OURS),
        Check("error over its bound, largest", dims["share_of_bound"].max(), 1.0, 0, OURS, rule=Rule.AT_MOST),
    ]


FIGURE = Figure(
    name="step",
    title="One gradient step on the embeddings",
    caption=CAPTION,
    compute=compute,
    draw=draw,
    checks=checks,
)
