"""What a run did, at chosen steps: one record for descents and flows, filled through the loop's `watch`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.checks import array_of, check_number
from ...base.errors import refusal
from ...model.ragged import Index, Vector, indices
from .steps import Point


@dataclass(frozen=True, eq=False)
class Trajectory:
    """m rows, one a recorded step.

    >>> from keytokens.model.ragged import Bags
    >>> from keytokens.lab.problems.problem import Problem
    >>> from keytokens.lab.descent import Descent, Normalised, run
    >>> problem = Problem.of(Bags.of([[[1.0], [0.0]]]), np.array([1.0, 0.0]))
    >>> recorder = Recorder()
    >>> _ = run(Descent(problem, Normalised(0.5)), np.zeros(1), 100, recorder)
    >>> found = recorder.trajectory
    >>> found.t.tolist()[-1], found.direction[-1].tolist(), bool(found.loss[-1] < found.loss[0])
    (100, [1.0], True)
    """

    t: Index  # (m,) steps of a descent, pieces of a flow
    loss: Vector  # (m,) L
    log_excess: Vector  # (m,) log |L - L_inf|, L_inf the loss with all attention on the selected tokens
    excess_sign: Vector  # (m,) of L - L_inf: negative where an unselected token has the better score
    norm: Vector  # (m,) |p| or |W|
    direction: Vector  # (m, ...) p/|p| or W/|W|, zeros at zero
    min_attention: Vector  # (m,) on the selected token, the least over the bags
    mean_attention: Vector  # (m,) ... and the mean
    soft_sparsity: Vector  # (m,) 1/|s|^2, mean over the bags: 1 for one token, T for even attention
    selection: Index  # (m, n) the selected token of each bag

    def __len__(self) -> int:
        return len(self.t)

    def distance(self, target: Any) -> Vector:
        """(m,) 1 - cos between the direction and a target, without cancellation.

        1 - u'w = |u - w|^2 / 2 for unit vectors keeps its digits where u'w rounds to 1.
        """
        w = array_of("Trajectory", "target", target, self.direction.shape[1:])
        if not w.any():
            raise refusal("Trajectory", "target", "be a direction other than 0", target)
        away = self.direction - w / np.linalg.norm(w)
        return np.sum(away.reshape(len(self), -1) ** 2, axis=1) / 2


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


@dataclass
class Recorder:
    """Give it to `run` as `watch`; it keeps the states whose step is in `steps` (None: every state).

    The default of a run of unknown length is log-spaced steps up to 10^9.

    >>> from keytokens.model.ragged import Bags
    >>> from keytokens.lab.problems.problem import Problem
    >>> from keytokens.lab.descent import Descent, Normalised, run
    >>> problem = Problem.of(Bags.of([[[1.0], [0.0]]]), np.array([1.0, 0.0]))
    >>> recorder = Recorder([0, 10, 20])
    >>> _ = run(Descent(problem, Normalised(0.5)), np.zeros(1), 20, recorder)
    >>> recorder.trajectory.norm.tolist()
    [0.0, 5.0, 10.0]
    """

    steps: Iterable[int] | None = field(default_factory=lambda: log_spaced(10**9).tolist())
    _wanted: frozenset[int] | None = field(init=False, repr=False)
    _rows: list[dict[str, Any]] = field(init=False, repr=False, default_factory=list)

    def __post_init__(self) -> None:
        listed = list(self.steps) if isinstance(self.steps, Iterable) else self.steps
        steps = np.zeros(0, int) if listed is None else indices(listed)
        if steps.ndim != 1 or (steps.size and steps.dtype.kind not in "iu"):
            raise refusal("Recorder", "steps", "be whole numbers, or None for every step", self.steps)
        self._wanted = None if self.steps is None else frozenset(steps.tolist())

    def __call__(self, state: Point) -> None:
        if self._wanted is None or state.t in self._wanted:
            self._rows.append(_row(state))

    @property
    def trajectory(self) -> Trajectory:
        if not self._rows:
            raise refusal("Recorder", "steps", "hold a step that the run has made", "no recorded step")
        columns: dict[str, NDArray[Any]] = {key: np.array([row[key] for row in self._rows]) for key in self._rows[0]}
        return Trajectory(**columns)


def _row(state: Point) -> dict[str, Any]:
    reading = state.reading
    excess = reading.excess(reading.selected)
    on_selected = reading.attention[reading.selected]
    norm = state.norm
    return {
        "t": state.t,
        "loss": reading.value,
        "log_excess": excess.log,
        "excess_sign": excess.sign,
        "norm": norm,
        "direction": state.p / norm if norm else state.p,
        "min_attention": on_selected.min(),
        "mean_attention": on_selected.mean(),
        "soft_sparsity": np.mean(1 / reading.bags.sum(reading.attention**2)),
        "selection": reading.selection,
    }
