"""The look of every figure, and its pictures: readable in grey and for colour-blind readers, the same bytes each time.

Nothing is said by colour alone: a line has a style or a marker too, an area a hatch. No `pyplot`, so no state is left
behind; matplotlib itself is imported when the first figure is drawn.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...base.errors import MissingExtra
from ...model.ragged import Vector
from .figure import Figure, Sheet, Table, Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Drawing
else:
    Axes = Any  # for the annotations of all figures


# Okabe and Ito's colours, told apart by all; their yellow is too pale for a line
BLACK, ORANGE, SKY, GREEN = "#000000", "#e69f00", "#56b4e9", "#009e73"
BLUE, RED, PURPLE, GREY = "#0072b2", "#d55e00", "#cc79a7", "#7f7f7f"


class Style(NamedTuple):
    """A line that differs from the others in colour, dashes and marker."""

    color: str
    linestyle: Any
    marker: str

    @property
    def line(self) -> dict[str, Any]:
        return {"color": self.color, "linestyle": self.linestyle}

    @property
    def all(self) -> dict[str, Any]:
        return {**self.line, "marker": self.marker}


STYLES = (
    Style(BLUE, "-", "o"),
    Style(ORANGE, "--", "s"),
    Style(GREEN, "-.", "^"),
    Style(RED, ":", "D"),
    Style(PURPLE, (0, (5, 1, 1, 1, 1, 1)), "v"),
    Style(BLACK, (0, (1, 1)), "P"),
)

_HOUSE: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
    "legend.frameon": True,
    "legend.framealpha": 0.92,
    "legend.edgecolor": "#cccccc",
    "legend.fontsize": 8.0,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "hatch.linewidth": 0.6,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "keytokens",  # the same names of clip paths each time
    "path.simplify": True,
}
DPI = 150


class Pictures(NamedTuple):
    png: bytes
    svg: bytes


def check_matplotlib() -> None:
    """Refuse before the work, not after it."""
    try:
        import matplotlib.backends.backend_agg  # noqa: F401
    except ImportError as error:
        raise MissingExtra("figures need matplotlib, an extra: pip install 'keytokens[plot]'") from error


def pictures(figure: Figure, tables: Tables) -> Pictures:
    """A figure as PNG and SVG, without dates: the same tables give the same bytes."""
    check_matplotlib()
    from matplotlib import rc_context, rcdefaults, rcParams

    with rc_context():
        rcdefaults()  # whatever the reader's own settings are, the figures look alike
        rcParams.update(_HOUSE)
        drawing, panels = _paper(figure.sheet)
        figure.draw(tables, *panels)
        drawing.draw_without_rendering()  # lay it out once, for both
        drawing.set_layout_engine("none")
        png, svg = io.BytesIO(), io.BytesIO()
        drawing.savefig(png, format="png", dpi=DPI, metadata={"Software": None, "Title": figure.title})
        drawing.savefig(svg, format="svg", metadata={"Date": None, "Creator": "keytokens", "Title": figure.title})
    return Pictures(png.getvalue(), svg.getvalue())


def _paper(sheet: Sheet) -> tuple[Drawing, list[Axes]]:
    from matplotlib.figure import Figure as Drawing

    width = 5.4 if sheet.columns == 1 else 4.1 * sheet.columns
    drawing = Drawing(figsize=(width, sheet.height), layout="constrained")
    drawing.get_layout_engine().set(w_pad=0.08, h_pad=0.06, wspace=0.04)  # type: ignore[union-attr, call-arg]
    return drawing, list(drawing.subplots(sheet.rows, sheet.columns, squeeze=False, width_ratios=sheet.widths).flat)


def plane(axes: Axes, low: tuple[float, float], high: tuple[float, float], name: str = "p") -> None:
    """A panel with both axes alike, for vectors."""
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal", xlabel=f"{name}₁", ylabel=f"{name}₂")


def ray(axes: Axes, direction: Vector, style: Style, label: str) -> None:
    """The half-line from the origin, as far as any panel reaches."""
    end = 1e3 * np.asarray(direction) / np.linalg.norm(direction)
    axes.plot(
        [0, end[0]], [0, end[1]], **style.line, linewidth=1.2, label=label, zorder=1.5, scalex=False, scaley=False
    )


def halfway(best: Vector, others: Vector, toward: Vector, reach: Any) -> Vector:
    """Points of the line across a direction that stands half way between the best points and the next."""
    middle = ((best @ toward).min() + (others @ toward).max()) / 2 * toward / (toward @ toward)
    return np.asarray(middle + np.outer(reach, [-toward[1], toward[0]]) / np.linalg.norm(toward))


def walk(axes: Axes, x: Vector, y: Vector, style: Style, label: str | None = None) -> None:
    """A path with a marker every ten steps and a large one where it starts."""
    axes.plot(x, y, color=style.color, marker=style.marker, markevery=10, markersize=3.2, linewidth=1.1, label=label)
    start: Any = {"markersize": 7, "markeredgecolor": "black", "markeredgewidth": 0.7, "zorder": 4}
    axes.plot(x[:1], y[:1], color=style.color, marker=style.marker, **start)


def several_walks(axes: Axes, paths: Table, styles: Sequence[Style]) -> None:
    """Runs, one style each; `run` says which rows belong to one."""
    for run, style in zip(np.unique(paths["run"]), styles, strict=True):
        mine = paths["run"] == run
        walk(axes, paths["p1"][mine], paths["p2"][mine], style)


def tokens(axes: Axes, keys: Vector, names: Sequence[str], places: Sequence[tuple[float, float]]) -> None:
    """Keys as points with a name beside each, moved by so many points of type."""
    axes.plot(keys[:, 0], keys[:, 1], "k*", markersize=8, zorder=5)
    for key, name, place in zip(keys, names, places, strict=True):
        axes.annotate(
            name,
            (float(key[0]), float(key[1])),
            place,
            textcoords="offset points",
            fontsize=7.5,
            zorder=6,
            bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "alpha": 0.85, "edgecolor": "none"},
        )


def number(x: float) -> str:
    """With a real minus sign.

    >>> number(-0.5)
    '−0.5'
    """
    return f"{x:g}".replace("-", "−")


def fading(count: int) -> list[tuple[float, float, float]]:
    """Colours from dark to light, evenly in grey too."""
    from matplotlib import colormaps

    return [tuple(colormaps["viridis"](x)[:3]) for x in np.linspace(0.0, 0.85, count)]


def cloud(axes: Axes, tokens: Table, column: str, name: str, named: Sequence[tuple[int, str]] = ()) -> Any:
    """Tokens by posterior difference, dark for rare ones; means by bins as a line; some with their names."""
    delta, y = tokens["delta"], tokens[column]
    dots = axes.scatter(delta, y, c=np.log10(tokens["frequency"]), s=7, cmap="viridis", alpha=0.75, linewidths=0)
    edges = np.linspace(-1, 1, 13)
    place = np.clip(np.searchsorted(edges, delta, side="right") - 1, 0, 11)
    filled = [k for k in range(12) if (place == k).sum() >= 5]
    middles = [(edges[k] + edges[k + 1]) / 2 for k in filled]
    line: Any = {"color": BLACK, "markersize": 3.5, "linewidth": 1.2, "label": "mean of a bin"}
    axes.plot(middles, [y[place == k].mean() for k in filled], "-o", **line)
    _name(axes, delta, y, named, rising=name.startswith("value"))
    axes.set(xlabel="posterior difference of a token", ylabel=name)
    axes.legend(loc="lower right" if name.startswith("value") else "lower left")
    return dots


def _name(axes: Axes, delta: Vector, y: Vector, named: Sequence[tuple[int, str]], rising: bool) -> None:
    """Names of both arms in slanted rows outside of the cloud: a line starts where its word does, and meets none."""
    if not named:
        return
    low, high = axes.get_ylim()
    room = 0.35 * (high - low)
    axes.set_ylim(low - room * rising, high + room)
    line: Any = {"arrowstyle": "-", "linewidth": 0.4, "color": GREY, "shrinkA": 0}
    for arm, side, places in ((-1, "left", (0.03, 0.36)), (1, "right", (0.64, 0.97))):
        mine = sorted((one for one in named if delta[one[0]] * arm > 0), key=lambda one: delta[one[0]])
        below = rising and arm < 0
        for x, (k, text) in zip(np.linspace(*places, len(mine)), mine, strict=True):
            axes.annotate(
                text,
                (float(delta[k]), float(y[k])),
                (float(x), 0.19 if below else 0.81),
                textcoords="axes fraction",
                fontsize=7,
                rotation=40 if (arm < 0) != below else -40,
                rotation_mode="anchor",
                ha=side,
                va="top" if below else "bottom",
                arrowprops={**line, "relpos": (float(arm > 0), float(below))},
                zorder=6,
            )
