"""The two panels of the trained-embeddings paper: value and attention of tokens against their posterior difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.bags import Vector
from .look import BLACK, GREY, sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

__all__ = ["cloud", "two_panels"]


def two_panels(delta: Vector, values: Vector, logits: Vector, frequency: Vector) -> Drawing:
    drawing, (left, right) = sheet(2, 3.4)
    cloud(left, delta, values, frequency, "value v·E")
    dots = cloud(right, delta, logits, frequency, "attention logit p·E")
    drawing.colorbar(dots, ax=right, label="log₁₀ frequency")
    return drawing


def cloud(
    axes: Axes, delta: Vector, y: Vector, frequency: Vector, name: str, named: Sequence[tuple[int, str]] = ()
) -> Any:
    """Tokens as points, dark for rare ones; means by bins as a line; some with their names."""
    dots = axes.scatter(delta, y, c=np.log10(frequency), s=7, cmap="viridis", alpha=0.75, linewidths=0)
    edges = np.linspace(-1, 1, 13)
    place = np.clip(np.searchsorted(edges, delta, side="right") - 1, 0, 11)
    filled = [k for k in range(12) if (place == k).sum() >= 5]
    middles = [(edges[k] + edges[k + 1]) / 2 for k in filled]
    axes.plot(
        middles,
        [y[place == k].mean() for k in filled],
        "-o",
        color=BLACK,
        markersize=3.5,
        linewidth=1.2,
        label="mean of a bin",
    )
    _name(axes, delta, y, named, rising=name.startswith("value"))
    axes.set_xlabel("posterior difference of a token")
    axes.set_ylabel(name)
    axes.legend(loc="lower right" if name.startswith("value") else "lower left")
    return dots


def _name(axes: Axes, delta: Vector, y: Vector, named: Sequence[tuple[int, str]], rising: bool) -> None:
    """Names in two columns where the cloud is not, each with a thin line to its point."""
    if named and not rising:  # room above the cloud
        low, high = axes.get_ylim()
        axes.set_ylim(low, high + 0.3 * (high - low))
    places = {True: ((0.3, 0.2, "left"), (0.55, 0.96, "right")), False: ((0.22, 0.96, "left"), (0.78, 0.96, "right"))}
    for (x, top, side), arm in zip(places[rising], (-1, 1), strict=True):
        mine = sorted((one for one in named if delta[one[0]] * arm > 0), key=lambda one: -y[one[0]])
        for row, (k, text) in enumerate(mine):
            axes.annotate(
                text,
                (float(delta[k]), float(y[k])),
                (x, top - 0.055 * row),
                textcoords="axes fraction",
                fontsize=7,
                ha=side,
                va="center",
                arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": GREY},
                zorder=6,
            )
