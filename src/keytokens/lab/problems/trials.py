"""Many small problems at once: gradient descent on a stack of trials, and what became of each.

All trials have one shape, n bags of T tokens, so that one step of all of them is a few operations on arrays (m, n, T).
The arithmetic is that of `selection_loss`, relative to the selected token and in the log domain; only the scale of
a gradient is kept for each trial by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...base.checks import check_number
from ...base.errors import refusal
from ...model.ragged import Bags, Index, Vector
from ..claims.max_margin.assumptions import can_win
from ..selection import local_optimum
from .geometry import misalignment
from .losses import MarginLoss, log_abs
from .selection_loss import SelectionProblem

SATURATED = 1 - 1e-5  # mean attention on the selected tokens
Flags = NDArray[np.bool_]


def on_span(problem: SelectionProblem) -> SelectionProblem:
    """The same problem in the coordinates of the space that holds every gradient, at most n (T - 1) of them.

    Descent from p = 0 never leaves that space, and all distances and angles within it are kept.
    """
    if problem.span is None:
        return problem
    return SelectionProblem(problem.keys.with_rows(problem.keys.rows @ problem.span.T), problem.scores, problem.loss)


@dataclass(frozen=True, eq=False)
class Trials:
    """m problems of one shape and one loss."""

    keys: Vector  # (m, n, T, d)
    scores: Vector  # (m, n, T)
    loss: MarginLoss

    @classmethod
    def of(cls, problems: Iterable[SelectionProblem]) -> Trials:
        """Stack problems.

        >>> one = SelectionProblem(Bags.of([[[1.0, 0.0], [0.0, 0.0]]]), np.array([1.0, 0.0]))
        >>> Trials.of([one, one, one]).keys.shape
        (3, 1, 2, 2)
        """
        listed = list(problems)
        shapes = {(tuple(one.keys.sizes.tolist()), one.keys.dim, one.loss.name) for one in listed}
        if len(shapes) != 1 or len(set(listed[0].keys.sizes.tolist())) != 1:
            rule = "be problems of one loss and one shape, all bags with as many tokens"
            raise refusal("Trials.of", "problems", rule, sorted(shapes))
        n, T, d = len(listed[0].keys), int(listed[0].keys.sizes[0]), listed[0].keys.dim
        keys = np.stack([one.keys.rows.reshape(n, T, d) for one in listed])
        return cls(keys, np.stack([one.scores.reshape(n, T) for one in listed]), listed[0].loss)

    @classmethod
    def repeated(cls, problem: SelectionProblem, times: int) -> Trials:
        """One problem for many starts; it is stored once."""
        one = cls.of([problem])
        keys, scores = (np.broadcast_to(x, (times, *x.shape[1:])) for x in (one.keys, one.scores))
        return cls(keys, scores, one.loss)

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, which: int) -> SelectionProblem:
        d = self.keys.shape[-1]
        starts = np.arange(self.keys.shape[1] + 1) * self.keys.shape[2]
        return SelectionProblem(Bags(self.keys[which].reshape(-1, d), starts), self.scores[which].ravel(), self.loss)

    def logits(self, p: Vector) -> Vector:
        """(T, m, n): tokens first, because sums over the first axis are the fast ones."""
        m, n, T, d = self.keys.shape
        a = np.matmul(self.keys.reshape(m, n * T, d), p[:, :, None]).reshape(m, n, T)
        return np.ascontiguousarray(a.transpose(2, 0, 1))

    @cached_property
    def _scores(self) -> Vector:
        """(T, m, n)."""
        return np.ascontiguousarray(self.scores.transpose(2, 0, 1))

    def descents(self, p: Vector) -> tuple[Vector, Vector]:
        """Minus the gradients: unit vectors (m, d), zeros where the gradient is zero, and log lengths (m,)."""
        a = self.logits(p)
        m, n, T, d = self.keys.shape
        chosen = a.argmax(axis=0) * (m * n) + np.arange(m * n).reshape(m, n)  # places; the first where several tie
        a -= a.take(chosen)
        pull, log_scale = self._pull(a, chosen, self.scores_at(a))
        top = log_scale.max(axis=1)
        top = np.where(np.isfinite(top), top, 0.0)
        pull *= np.exp(log_scale - top[:, None])
        down = np.matmul(pull.transpose(1, 2, 0).reshape(m, 1, n * T), self.keys.reshape(m, n * T, d))[:, 0]
        length = np.sqrt(np.square(down).sum(axis=1))
        unit = down / np.where(length > 0, length, 1.0)[:, None]
        return unit, top + log_abs(length) - np.log(n)

    def scores_at(self, a: Vector) -> Vector:
        """(T, m, n) the scores where the logits are `a` (T, m, n): the same everywhere for a linear head."""
        return self._scores

    def _pull(self, a: Vector, chosen: Index, scores: Vector) -> tuple[Vector, Vector]:
        """-n dL/da of every token, (T, m, n), and the logarithms (m, n) of the scale of each bag; `chosen`: its place.

        The scale is the attention of the strongest token u whose score differs from the chosen one's: s_u = exp(a_u)/Z
        may underflow. With e_t = exp(a_t - a_u) the shortfall s'gamma - gamma_chosen is s_u sum_t e_t above_t, and the
        pull in units of s_u is e_t (above_t - shortfall), or -s_t sum_t e_t above_t for the chosen one and what ties.
        """
        best = scores.take(chosen)
        above = scores - best
        ties = above == 0
        others = a.copy()
        np.copyto(others, -np.inf, where=ties)
        strongest = others.max(axis=0)
        base = np.where(np.isfinite(strongest), strongest, 0.0)
        e = _exp(others - base)  # 1e-304 for ties: nothing beside the strongest token's 1
        tied = _tied(a, ties)
        scale = np.exp(base)
        Z = (1.0 if tied is None else tied.sum(axis=0)) + scale * e.sum(axis=0)
        factor = (e * above).sum(axis=0)
        shortfall = scale / Z * factor
        pull = e * (above - shortfall)
        if tied is None:
            pull.put(chosen, -factor / Z)
        else:
            np.copyto(pull, -tied * (factor / Z), where=ties)
        return pull, strongest - np.log(Z) + self.loss.log_abs_slope(best + shortfall)

    def descend(
        self, steps: int, eta: float = 1.0, *, start: Vector | None = None, floor: float = 0.0, plain: bool = False
    ) -> Vector:
        """(m, d) where descent is after so many steps of length eta |g| / (|g| + floor), or eta |g| if `plain`."""
        check_number("Trials.descend", "steps", steps, 0, whole=True)
        check_number("Trials.descend", "eta", eta, 0.0, above=True)
        check_number("Trials.descend", "floor", floor, 0.0)
        p = np.zeros((len(self), self.keys.shape[-1])) if start is None else np.array(start, np.float64)
        if p.shape != (len(self), self.keys.shape[-1]):
            raise refusal("Trials.descend", "start", "be one vector a trial", f"shape {p.shape}")
        for _ in range(steps):
            unit, log_length = self.descents(p)
            if plain:
                unit *= np.exp(log_length)[:, None]
            elif floor:
                unit *= np.exp(log_length - np.logaddexp(log_length, np.log(floor)))[:, None]
            p += eta * unit
        return p

    def judged(self, p: Vector) -> Endings:
        """What became of each trial that has come to p."""
        return Endings.of(self, p)


@dataclass(frozen=True, eq=False)
class Endings:
    """Where m trials ended; what concerns a max-margin direction is nan for the runs that are not saturated."""

    attention: Vector  # (m,) on the selected tokens, mean over the bags
    is_best: Flags  # (m,) the selected tokens are those with the largest scores
    gap: Vector  # (m,) least score of a selected token above a neighbour of its max-margin direction
    distance: Vector  # (m,) 1 - cos to the max-margin direction of the selected tokens
    separable: Flags  # (m,) the best tokens can be selected at all

    @classmethod
    def of(cls, trials: Trials, p: Vector) -> Endings:
        a = trials.logits(p)
        selection = a.argmax(axis=0)
        attention = (1 / np.exp(a - a.max(axis=0)).sum(axis=0)).mean(axis=1)
        is_best = (selection == trials.scores.argmax(axis=2)).all(axis=1)
        saturated = attention >= SATURATED
        judged = [_judged(trials[k], p[k], selection[k]) if saturated[k] else (np.nan,) * 2 for k in range(len(trials))]
        gap, distance = np.array(judged).T
        # what is selected with a margin needs no other proof that it can be selected
        separable = [bool(saturated[k] and is_best[k]) or can_win(trials[k]) for k in range(len(trials))]
        return cls(attention, is_best, gap, distance, np.array(separable))

    @cached_property
    def saturated(self) -> Flags:
        return self.attention >= SATURATED

    @cached_property
    def is_local(self) -> Flags:
        """Saturated on a locally optimal selection."""
        return self.saturated & (self.gap > 0)

    @cached_property
    def is_global(self) -> Flags:
        """... which is the globally optimal one."""
        return self.is_local & self.is_best


def _tied(a: Vector, ties: Flags) -> Vector | None:
    """exp(a) of what ties with the chosen token, else 0; None where nothing ties, or all of a bag: that has no pull."""
    many = ties.sum(axis=0, dtype=np.intp)
    if not ((many > 1) & (many < len(ties))).any():
        return None
    return np.where(ties, _exp(a), 0.0)


def _exp(x: Vector) -> Vector:
    """exp between 1e-304 and 1e304, where all sums are of order 1: what underflows makes the processor far slower."""
    return np.exp(np.clip(x, -700.0, 700.0))


def _judged(problem: SelectionProblem, p: Vector, selection: Index) -> tuple[float, float]:
    """Score gap and 1 - cos to the max-margin direction of what p selects."""
    found = local_optimum(problem.keys, problem.scores, selection)  # p itself separates: never NotSeparable
    return found.gap, misalignment(p, found.solution.p)
