"""Problems built on the max-margin problem: labels, relaxed rows, and sets of which one token must win."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from ...base.checks import check_number, floats
from ...base.errors import NotSeparable, refusal
from ...model.ragged import Bags, Index, Vector, flat_sets, indices
from .problem import Dense, MarginProblem
from .solution import Solution
from .solver import solve

SAME = 1e-9  # norms that differ by less, relatively, tie


def label_svm(features: Any, labels: Any) -> Solution:
    """v = argmin |v| subject to Y_i v'r_i >= 1, as `p` of the solution; `support` are the support vectors.

    >>> solution = label_svm([[1.0, 1.0], [1.0, -1.0], [0.5, 1.5]], [1, -1, 1])
    >>> np.abs(solution.p).round(12).tolist(), solution.support.tolist()
    ([0.0, 1.0], [0, 1])
    """
    problem = MarginProblem.from_rows(features)
    Y = floats(labels)
    if Y is None or Y.shape != (len(problem),) or not np.isin(Y, [-1, 1]).all():
        raise refusal("label_svm", "labels", f"be 1 or -1 for each of the {len(problem)} features", labels)
    return solve(MarginProblem.from_rows(Y[:, None] * problem.rows(np.arange(len(problem)))))


def relaxed_problem(keys: Any, selection: Sequence[int] | Index, support: Sequence[int] | Index) -> MarginProblem:
    """Rows of the bags in `support` (indices) ask for 1, rows of the other bags for 0.

    >>> relaxed_problem([[[1.0], [0.0]], [[2.0], [0.0]]], [0, 0], [1]).b.tolist()
    [0.0, 1.0]
    """
    bags = Bags.of(keys, "relaxed_problem")
    bags.chosen(selection, "relaxed_problem")
    chosen = indices(support)
    whole = chosen.dtype.kind in "iu" or not chosen.size
    if chosen.ndim != 1 or not whole or not ((chosen >= 0) & (chosen < len(bags))).all():
        raise refusal("relaxed_problem", "support", f"be indices of bags, below {len(bags)}", support)
    problem = MarginProblem.from_selection(bags, selection)
    assert problem.names is not None
    return replace(problem, b=np.isin(problem.names[:, 0], chosen).astype(np.float64))


@dataclass(frozen=True, eq=False)
class SetSolution:
    """The shortest p over all choices of one winner from each set; several where norms tie (no convex problem).

    >>> found = solve_set_valued([[[2.0], [1.0], [0.0]]], [{0, 1}])
    >>> found.selections, found.p.tolist()
    (((0,),), [0.5])
    """

    solutions: tuple[Solution, ...]  # distinct p, the shortest first; equal norms, or within what was asked for
    selections: tuple[tuple[int, ...], ...]  # the winner of each bag

    @property
    def p(self) -> Vector:
        return self.solutions[0].p

    @property
    def norm(self) -> float:
        return self.solutions[0].norm

    @property
    def margin(self) -> float:
        return self.solutions[0].margin


def solve_set_valued(
    keys: Any, sets: Sequence[Iterable[int]], *, within: float = 0.0, limit: int = 100_000
) -> SetSolution:
    """min |p| where in each bag some token of its set stands 1 above all tokens outside the set.

    `within`: also the solutions of other choices that are longer by up to this share.

    Depth first over the winners; rows only make |p| grow, so a branch ends where it is longer than the best leaf.
    Where every branch is a contradiction, NotSeparable carries the proof of each: (winners so far, Farkas vector).

    >>> found = solve_set_valued([[[1.0], [-1.0], [0.0]]], [{0, 1}])
    >>> sorted(solution.p.item() for solution in found.solutions)
    [-1.0, 1.0]
    """
    bags = Bags.of(keys, "solve_set_valued")
    bag, token = flat_sets("solve_set_valued", "sets", sets, bags.sizes, "bag")
    winners = [token[bag == i] for i in range(len(bags))]
    # A set that is the whole bag asks for nothing: any of its tokens will do.
    winners = [w[:1] if len(w) == size else w for w, size in zip(winners, bags.sizes, strict=True)]
    choices = prod(len(w) for w in winners)
    check_number("solve_set_valued", "limit", limit, 1, whole=True)
    if choices > limit:
        advice = "make the sets smaller, or raise `limit` and wait"
        raise refusal("solve_set_valued", "sets", f"allow at most {limit} choices of winners", choices, advice)
    check_number("solve_set_valued", "within", within, 0.0)
    tree = _Tree(bags, bag, token, winners, (1 + SAME) * (1 + within))
    leaves = tree.leaves()
    if not leaves:
        message = "solve_set_valued: no choice of winners can be separated; `.witness` proves it for each branch."
        raise NotSeparable(message, tuple(tree.proofs))
    return SetSolution(tuple(leaf for leaf, _ in leaves), tuple(selection for _, selection in leaves))


class _Tree:
    """Bags in the order of branching: those with one winner first, so that the shared rows are solved once."""

    def __init__(self, bags: Bags, bag: Index, token: Index, winners: list[Index], room: float) -> None:
        self.bags, self.winners, self.room = bags, winners, room
        self.order = sorted(range(len(bags)), key=lambda i: len(winners[i]))
        outside = np.setdiff1d(np.arange(len(bags.rows)), bags.starts[bag] + token)
        self.losers = [outside[bags.bag[outside] == i] - bags.starts[i] for i in range(len(bags))]
        self.best = np.inf
        self.proofs: list[tuple[tuple[int, ...], Any]] = []

    def problem(self, path: tuple[int, ...]) -> MarginProblem:
        """The rows of the bags that have a winner so far. A longer path only adds rows at the end."""
        rows, names = [np.zeros((0, self.bags.dim))], [np.zeros((0, 2), np.intp)]
        for i, winner in zip(self.order, path, strict=False):
            rows.append(self.bags[i][winner] - self.bags[i][self.losers[i]])
            names.append(np.column_stack([np.full(len(self.losers[i]), i), self.losers[i]]))
        A = np.concatenate(rows)
        return MarginProblem(Dense(A), np.ones(len(A)), Dense(np.zeros((0, self.bags.dim))), np.concatenate(names))

    def children(self, path: tuple[int, ...], start: Solution | None) -> list[tuple[tuple[int, ...], Any]]:
        """The next winners that may still be best, the shortest last: it will be looked at first."""
        found = []
        for winner in self.winners[self.order[len(path)]]:
            try:
                found.append(((*path, int(winner)), solve(self.problem((*path, int(winner))), start=start)))
            except NotSeparable as refuted:
                self.proofs.append(((*path, int(winner)), refuted.witness))
        return sorted(found, key=lambda child: -child[1].norm)

    def walk(self) -> Iterator[tuple[Solution, tuple[int, ...]]]:
        # Bags with one winner leave no choice: begin where the choices begin.
        fixed = tuple(int(self.winners[i][0]) for i in self.order if len(self.winners[i]) == 1)
        try:
            stack: list[tuple[tuple[int, ...], Any]] = [(fixed, solve(self.problem(fixed)))]
        except NotSeparable as refuted:
            self.proofs.append((fixed, refuted.witness))
            return
        while stack:
            path, solution = stack.pop()
            if solution.norm > self.best * self.room:
                continue
            if len(path) == len(self.bags):
                self.best = min(self.best, solution.norm)
                selection = np.empty(len(path), int)
                selection[self.order] = path
                yield solution, tuple(selection.tolist())
            else:
                stack.extend(self.children(path, solution))

    def leaves(self) -> list[tuple[Solution, tuple[int, ...]]]:
        """The shortest leaves, one for each p, the shortest first."""
        found: list[tuple[Solution, tuple[int, ...]]] = []
        for leaf in self.walk():
            found = [other for other in found if other[0].norm <= self.best * self.room]
            if all(np.abs(leaf[0].p - other[0].p).max() > SAME * (1 + leaf[0].norm) for other in found):
                found.append(leaf)
        return sorted(found, key=lambda one: one[0].norm)
