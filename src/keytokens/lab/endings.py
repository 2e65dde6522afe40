"""Many runs: a batch of them, and what became of each, which selection it ended in and whether that is optimal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..base.checks import check_choice, check_number
from ..base.errors import refusal
from ..base.threads import one_blas_thread
from ..explain.record import frame
from ..model.ragged import Index, Vector
from ..training.loop import Status, run
from .descent.flow import flow
from .descent.stack import Flags, Stack, has_given_scores
from .descent.steps import Descent, Normalised, Plain
from .problems.geometry import misalignment
from .problems.logits import Keys
from .problems.problem import Problem
from .selection import SATURATED, local_optimum, separable

BATCHES = ("normalised", "plain", "flow")


@dataclass(frozen=True, eq=False)
class Endings:
    """Where m runs ended; what concerns a max-margin direction is nan for the runs that are not saturated."""

    attention: Vector  # (m,) on the selected tokens, mean over the bags
    is_best: Flags  # (m,) the selected tokens are those with the largest scores
    gap: Vector  # (m,) least score of a selected token above a neighbour of its max-margin direction
    distance: Vector  # (m,) 1 - cos to the max-margin direction of the selected tokens
    separable: Flags  # (m,) the best tokens can be selected at all
    selections: tuple[Index, ...]
    ends: tuple[Vector, ...]
    statuses: tuple[Status, ...]
    seeds: tuple[int, ...] = ()

    @classmethod
    def of(cls, problems: Stack | Sequence[Problem], ends: Sequence[Vector] | Vector) -> Endings:
        """Runs that have come to `ends`; each problem is judged once for each selection."""
        every = [problems[k] for k in range(len(problems))]
        readings = [problem.read((p,)) for problem, p in zip(every, ends, strict=True)]
        attention = np.array([one.attention[one.selected].mean() for one in readings])
        known: dict[tuple[int, bytes], tuple[float, Vector]] = {}
        rows = []
        for problem, one, p, share in zip(every, readings, ends, attention, strict=True):
            selection, best = one.selection, problem.keys.argmax(problem.scores)
            is_best, saturated = bool((selection == best).all()), share >= SATURATED
            gap = away = np.nan
            if saturated:
                key = (id(problem), selection.tobytes())
                if key not in known:
                    found = local_optimum(problem.keys, problem.scores, selection)  # p itself separates
                    known[key] = found.gap, found.solution.p
                gap, away = known[key][0], misalignment(p, known[key][1]) if p.any() else 0.0
            # what is selected with a margin needs no other proof that it can be selected
            rows.append((is_best, gap, away, bool(saturated and is_best) or separable(problem.keys, best)))
        flags, gaps, distances, possible = (np.array(column) for column in zip(*rows, strict=True))
        chosen = tuple(one.selection for one in readings)
        statuses = (Status.OUT_OF_STEPS,) * len(rows)
        return cls(attention, flags, gaps, distances, possible, chosen, tuple(map(np.asarray, ends)), statuses)

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

    @property
    def columns(self) -> dict[str, Any]:
        """A row a run."""
        return {
            **({"seed": self.seeds} if self.seeds else {}),
            "selection": [tuple(one.tolist()) for one in self.selections],
            "locally_optimal": self.is_local,
            "globally_optimal": self.is_global,
            "saturated": self.saturated,
            "correlation": 1 - self.distance,
            "norm": np.array([np.linalg.norm(p) for p in self.ends]),
            "attention": self.attention,
            "status": [one.name for one in self.statuses],
        }

    def to_frame(self) -> Any:
        """A pandas data frame with a row for each run."""
        return frame(self.columns)


@one_blas_thread()
def run_many(
    problems: Iterable[Any] | Callable[[int], Any],
    seeds: Iterable[int] = (),
    *,
    method: str = "normalised",
    steps: int = 1000,
    eta: float = 0.1,
    starts: Any = None,
    norm: float = 1e8,
) -> Endings:
    """Runs of many problems with given scores, or of one problem from many starts, and what became of each.

    `problems` is a list, or a function of a seed with a list of `seeds`. Descents of problems of one shape run
    together; they make `steps` of length `eta`, or of eta times the gradient ("plain"). "flow" goes on to `norm`, which
    takes about a second a run where plain descent would never come.

    >>> found = run_many([Problem.of([[[1.0, 0.0], [0.0, 0.0]]], [1.0, 0.0])] * 2, starts=[[0.0, 1.0], [0.0, 0.0]])
    >>> found.columns["selection"], found.is_global.tolist()
    ([(0,), (0,)], [True, True])
    """
    check_choice("run_many", "method", method, BATCHES)
    check_number("run_many", "norm", norm, 0.0, above=True)
    numbers = tuple(seeds)
    made = [problems(seed) for seed in numbers] if callable(problems) else list(problems)
    inner: list[Problem] = [getattr(one, "inner", one) for one in made]
    if not inner or not all(isinstance(one, Problem) and has_given_scores(one) for one in inner):
        rule = "be problems with given scores that train p or W, or a function of a seed"
        raise refusal("run_many", "problems", rule, problems)
    long = [one if isinstance(one.logits, Keys) else Problem.of(one.keys, one.scores, one.loss) for one in inner]
    begin = [np.zeros(one.keys.dim) for one in long] if starts is None else [np.ravel(one) for one in starts]
    if [len(one) for one in begin] != [one.keys.dim for one in long]:
        raise refusal("run_many", "starts", f"be one start for each of the {len(long)} problems", starts)
    shapes = {(one.loss.name, one.keys.dim, *one.keys.sizes.tolist()) for one in long}
    if method != "flow" and len(shapes) == 1 and len(set(long[0].keys.sizes.tolist())) == 1:
        stack = Stack.of(long)
        found = Endings.of(stack, stack.descend(steps, eta, start=np.stack(begin), plain=method == "plain"))
        return replace(found, seeds=numbers)
    if method == "flow":
        outcomes: list[Any] = [flow(problem, start, norm) for problem, start in zip(long, begin, strict=True)]
    else:
        step = Plain(eta) if method == "plain" else Normalised(eta)
        outcomes = [run(Descent(one, step), start, steps) for one, start in zip(long, begin, strict=True)]
    found = Endings.of(long, [one.state.p for one in outcomes])
    return replace(found, statuses=tuple(one.status for one in outcomes), seeds=numbers)
