"""Pictures of runs: paths in the plane, directions against steps, basins of attraction. All are matplotlib Figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.checks import check_number
from ..base.errors import refusal
from ..model.ragged import Bags, Vector
from .descent.trajectory import Run
from .figures.look import BLACK, STYLES, check_matplotlib

if TYPE_CHECKING:
    from .front import Problem


def _figure(panels: int) -> tuple[Any, list[Any]]:
    check_matplotlib()
    from matplotlib.figure import Figure  # no pyplot, so nothing is left behind

    drawing = Figure(figsize=(4.2 * panels, 3.6), layout="constrained")
    return drawing, list(np.atleast_1d(drawing.subplots(1, panels)))


def run_picture(runs: Sequence[Run], direction: Any = None, keys: Bags | None = None) -> Any:
    """Norms against steps; 1 - cos to a direction, if there is one, else attention; before them paths in the plane."""
    plane = np.size(runs[0].p) == 2
    drawing, axes = _figure(2 + plane)
    if plane:
        paths(axes[0], runs, direction, keys)
    norms, turned = axes[-2:]
    for k, run in enumerate(runs):
        style, t = STYLES[k % len(STYLES)].line, run["t"]
        norms.plot(t, run["norm"], **style)
        turned.plot(t, run["mean_attention"] if direction is None else run.distance(direction), **style)
    for one in (norms, turned):
        one.set_xscale("symlog", linthresh=1)
        one.set_xlabel("steps")
    norms.set_yscale("symlog", linthresh=1)
    norms.set_ylabel("norm")
    if direction is None:
        turned.set_ylabel("attention on the selected tokens")
    else:
        turned.set(yscale="log", ylabel="1 − cos to the direction")
    return drawing


def paths(axes: Any, runs: Sequence[Run], direction: Any = None, keys: Bags | None = None) -> None:
    """Runs in the plane of p, with the keys and a direction."""
    for k, run in enumerate(runs):
        points = run["norm"][:, None] * run["direction"].reshape(len(run), -1)
        axes.plot(*points.T, **STYLES[k % len(STYLES)].line)
    if keys is not None:
        axes.plot(*keys.rows.T, "*", color=BLACK, label="keys")
    if direction is not None:
        axes.axline((0, 0), np.ravel(direction), color=BLACK, linestyle="--", linewidth=1, label="direction")
    axes.set(xlabel="p₁", ylabel="p₂")
    if keys is not None or direction is not None:
        axes.legend()


def basins_picture(problem: Problem, extent: float, resolution: int, method: str) -> Any:
    """Colours and markers: the selection that a run from each point of a grid ends in; crosses: none yet."""
    check_number("Problem.plot_basins", "extent", extent, 0.0, above=True)
    check_number("Problem.plot_basins", "resolution", resolution, 2, whole=True)
    if problem.inner.keys.dim != 2:
        raise refusal("Problem.plot_basins", "problem", "have p in the plane", repr(problem), "use basins()")
    drawing, (axes,) = _figure(1)
    line = np.linspace(-extent, extent, resolution)
    starts: Vector = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    found = problem.basins(starts, method=method)
    selections = [tuple(one.tolist()) for one in found.selections]
    ended = zip(selections, found.saturated, strict=True)
    for k, selection in enumerate(dict.fromkeys(one for one, saturated in ended if saturated)):
        here = found.saturated & [one == selection for one in selections]
        style = STYLES[k % len(STYLES)]
        axes.plot(*starts[here].T, style.marker, color=style.color, markersize=4, label=f"tokens {selection}")
    if not found.saturated.all():
        axes.plot(*starts[~found.saturated].T, "x", color=BLACK, markersize=4, label="not saturated")
    axes.plot(*problem.inner.keys.rows.T, "*", color=BLACK, markersize=9)
    axes.set(xlabel="p₁", ylabel="p₂", title="Where each start ends")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return drawing
