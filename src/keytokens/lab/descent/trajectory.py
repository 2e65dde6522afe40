"""What a run did, at chosen steps: one record for descents and flows, filled through the loop's `watch`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.checks import array_of, check_number, floats
from ...base.errors import refusal
from ...explain.record import frame
from ...model.ragged import Index, Vector, indices
from ...training.loop import Status, run
from ..problems.reading import Blocks
from .steps import Point


def log_spaced(last: int, per_decade: int = 10) -> Index:
    """0, 1, ... up to `last`, evenly in the logarithm.

    >>> log_spaced(1000, 2).tolist()
    [0, 1, 3, 10, 32, 100, 316, 1000]
    """
    check_number("log_spaced", "last", last, 0, whole=True)
    check_number("log_spaced", "per_decade", per_decade, 1, whole=True)
    if last < 1:
        return np.array([0])
    count = int(np.ceil(per_decade * np.log10(last))) + 1
    return np.unique(np.concatenate([[0], np.rint(np.geomspace(1, last, count)).astype(np.intp), [last]]))


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """How a run ended, and its record.

    `run[name]` is a column: `t` (steps of a descent, pieces of a flow), `loss`, `log_excess` and `excess_sign` of L -
    L_inf, L_inf the loss with all attention on the selected tokens, `norm` and `direction` of p or W, `min_attention`
    and `mean_attention` on the selected tokens, `soft_sparsity` (1/|s|^2, mean over the bags: 1 for one token, T for
    even attention) and `selection`.

    >>> from keytokens.lab.descent import Descent, Normalised
    >>> from keytokens.lab.problems.problem import Problem
    >>> found = Run.of(Descent(Problem.of([[[1.0], [0.0]]], [1.0, 0.0]), Normalised(0.5)), np.zeros(1), 20, [0, 10])
    >>> found, found["norm"].tolist(), found.selection.tolist()
    (Run(OUT_OF_STEPS, t=20, norm=10, 3 rows), [0.0, 5.0, 10.0], [0])
    """

    end: Point
    status: Status
    _rows: list[dict[str, Any]]

    @classmethod
    def of(cls, method: Any, start: Any, max_steps: int, steps: Sequence[int] | None = None) -> Run:
        """Run a method, with a row for each step in `steps`, log-spaced ones unless given, and one for the end."""
        given = log_spaced(max_steps) if steps is None else indices(steps)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise refusal("Run", "steps", "be whole numbers", steps)
        recorded, rows = frozenset(given.tolist()), list[dict[str, Any]]()

        def watch(state: Point) -> None:
            if state.t in recorded:
                rows.append(_row(state))

        outcome = run(method, start, max_steps, watch)
        if not rows or rows[-1]["t"] != outcome.state.t:
            rows.append(_row(outcome.state))
        return cls(outcome.state, outcome.status, rows)

    @classmethod
    def through(cls, points: Sequence[Point], status: Status) -> Run:
        """A run that was made elsewhere, from the points that it passed; the last is its end."""
        return cls(points[-1], status, list(map(_row, points)))

    def __repr__(self) -> str:
        return f"Run({self.status.name}, t={self.end.t}, norm={self.end.norm:.4g}, {len(self)} rows)"

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._rows[0]:
            raise refusal("Run", "name", f"be one of {', '.join(self._rows[0])}", name)
        return np.array([row[name] for row in self._rows])

    @property
    def blocks(self) -> Blocks:
        """All that is trained, at the end."""
        return self.end.blocks

    @property
    def p(self) -> Vector:
        """p or W at the end; K Q' where the factors are trained."""
        return self.end.problem.parameter(self.blocks)

    @property
    def selection(self) -> Index:
        """(n,) the token with most attention of each bag, at the end."""
        return self.end.reading.selection

    def distance(self, direction: Any) -> Vector:
        """(m,) 1 - cos to a direction, of W also row by row, as `misalignment` has it without cancellation."""
        mine, given = self["direction"], floats(direction)
        long = mine.ndim > 2 and given is not None and given.shape == (mine[0].size,)
        w = array_of("Run", "direction", np.reshape(direction, mine.shape[1:]) if long else direction, mine.shape[1:])
        if not w.any():
            raise refusal("Run", "direction", "be a direction other than 0", direction)
        return np.sum((mine - w / np.linalg.norm(w)).reshape(len(self), -1) ** 2, axis=1) / 2

    def correlation(self, direction: Any) -> Vector:
        """(m,) the cosine to a direction, at the recorded steps; 0 at p = 0."""
        return np.where(self["norm"] > 0, 1 - self.distance(direction), 0.0)

    def to_frame(self) -> Any:
        """A pandas data frame with a row for each recorded step."""
        return frame([{name: x for name, x in row.items() if name != "direction"} for row in self._rows])

    def plot(self, direction: Any = None) -> Any:
        """A matplotlib Figure: the path in the plane, if p has two entries, and norm and direction against steps."""
        from ..pictures import run_picture  # a door: matplotlib is wanted here alone

        return run_picture([self], direction)


def _row(state: Point) -> dict[str, Any]:
    reading = state.reading
    excess = reading.excess(reading.selected)
    on_selected = reading.attention[reading.selected]
    p = state.problem.parameter(state.blocks)
    norm = float(np.sqrt(np.vdot(p, p)))
    return {
        "t": state.t,
        "loss": reading.value,
        "log_excess": excess.log,
        "excess_sign": excess.sign,
        "norm": norm,
        "direction": p / norm if norm else p,
        "min_attention": on_selected.min(),
        "mean_attention": on_selected.mean(),
        "soft_sparsity": np.mean(1 / reading.bags.sum(reading.attention**2)),
        "selection": reading.selection,
    }
