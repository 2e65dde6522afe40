"""Which tokens win: scores, globally and locally optimal selections, neighbours, cones, and the tests they rest on.

For keys k_it and scores gamma_it = Y_i v'x_it, a *selection* takes one token of each bag. It is locally optimal if its
max-margin direction exists and every selected token outscores its SVM-neighbours, the tokens that sit on the margin.

Keys and values: an array (n, T, d), a list of arrays (T_i, d), or `Bags`. Scores and other numbers of tokens: flat
(N,), an array (n, T), or a list with a list for each bag. A selection: one index a bag, in a list or an array.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.checks import array_of, check_number
from ..base.errors import NotSeparable, refusal
from ..model.ragged import Bags, Index, Vector
from .problems.scores import read_scores
from .svm.problem import MarginProblem
from .svm.solution import NotSolved, Solution
from .svm.solver import solve, solved

ON_THE_MARGIN = 1e-6  # a token whose margin is below 1 + this is a neighbour
MOST_SELECTIONS = 200_000  # to enumerate
MOST_TUPLES = 20_000  # of rows, to test for general position
SATURATED = 1 - 1e-5  # mean attention on the selected tokens from which on a run has decided


def _read(owner: str, keys: Any, gamma: Any) -> tuple[Bags, Vector]:
    bags = Bags.of(keys, owner)
    return bags, read_scores(owner, gamma, bags)


def _score_gap(bags: Bags, gamma: Vector, chosen: Index, among: NDArray[np.bool_]) -> float:
    """The least gamma_chosen - gamma_t over the tokens `among`; inf if there are none."""
    return float((bags.spread(gamma[chosen]) - gamma)[among].min(initial=math.inf))


@dataclass(frozen=True, eq=False)
class LocalOptimum:
    """A selection with its max-margin direction, judged.

    >>> keys, gamma = [[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]], np.array([1.0, 0.9, 0.0])
    >>> [(round(one.gap, 9), one.holds) for one in locally_optimal_selections(keys, gamma)]
    [(1.0, True), (0.9, True)]
    """

    selection: Index
    solution: Solution
    neighbours: NDArray[np.bool_]  # (N,) tokens on the margin
    gap: float  # least score difference to a neighbour; inf without neighbours

    @property
    def holds(self) -> bool:
        """Whether every selected token outscores its neighbours."""
        return self.gap > 0

    @property
    def direction(self) -> Vector:
        return self.solution.p / np.linalg.norm(self.solution.p)


def local_optimum(keys: Any, gamma: Any, selection: Sequence[int] | Index) -> LocalOptimum:
    """Judge one selection; `NotSeparable` if no direction lets it win.

    >>> keys, gamma = [[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]], np.array([1.0, 0.9, 0.0])
    >>> one = local_optimum(keys, gamma, [1])
    >>> one.holds, one.neighbours.tolist()
    (True, [False, False, True])
    """
    bags, gamma = _read("local_optimum", keys, gamma)
    bags.chosen(selection, "local_optimum")
    return _judged(bags, gamma, selection, solve(MarginProblem.from_selection(bags, selection)))


def separable(keys: Any, selection: Sequence[int] | Index) -> bool:
    """Whether some direction lets these tokens win.

    >>> separable([[[1.0], [0.0], [2.0]]], [0]), separable([[[1.0], [0.0], [2.0]]], [1])
    (False, True)
    """
    return solved(solve, MarginProblem.from_selection(Bags.of(keys, "separable"), selection)) is not None


def _judged(bags: Bags, gamma: Vector, selection: Sequence[int] | Index, solution: Solution) -> LocalOptimum:
    chosen = bags.chosen(selection)
    margins = bags.spread(bags.rows[chosen] @ solution.p) - bags.rows @ solution.p
    neighbours = margins < 1 + ON_THE_MARGIN
    neighbours[chosen] = False
    gap = _score_gap(bags, gamma, chosen, neighbours)
    return LocalOptimum(np.asarray(selection, np.intp), solution, neighbours, gap)


def locally_optimal_selections(keys: Any, gamma: Any) -> Iterator[LocalOptimum]:
    """All locally optimal selections, by enumeration of the T_1 x ... x T_n candidates, in their order.

    Tokens of the first few bags that cannot win together cannot win with more bags either: their branch ends.

    >>> keys, gamma = [[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]], np.array([1.0, 0.9, 0.0])
    >>> [one.selection.tolist() for one in locally_optimal_selections(keys, gamma)]
    [[0], [1]]
    """
    bags, gamma = _read("locally_optimal_selections", keys, gamma)
    candidates = math.prod(bags.sizes.tolist())
    if candidates > MOST_SELECTIONS:
        rule = f"have at most {MOST_SELECTIONS:,} selections to enumerate"
        raise refusal("locally_optimal_selections", "keys", rule, candidates, "see where runs end: lab.run_many")
    judged = (_judged(bags, gamma, selection, solution) for selection, solution in _separable(bags, (), None))
    return (one for one in judged if one.holds)


def _separable(bags: Bags, chosen: tuple[int, ...], start: Solution | None) -> Iterator[tuple[Index, Solution]]:
    """Selections that go on from tokens of the first bags and can win, each begun where those few ended."""
    k = len(chosen) + 1
    first = Bags(bags.rows[: bags.starts[k]], bags.starts[: k + 1])
    for token in range(bags.sizes[k - 1]):
        selection = (*chosen, token)
        solution = None
        try:
            solution = solve(MarginProblem.from_selection(first, np.array(selection)), start=start)
        except NotSeparable:
            continue
        except NotSolved:  # a margin too thin to tell; with more bags there may be a proof that there is none
            if k == len(bags):
                raise
        if k < len(bags):
            yield from _separable(bags, selection, solution)
        elif solution is not None:
            yield np.array(selection), solution


# Any direction -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DirectionalNeighbours:
    """What a direction q selects, with what margin, and which tokens attain it.

    >>> keys, gamma = [[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]], np.array([1.0, 0.9, 0.0])
    >>> directional_neighbours(keys, gamma, [1.0, 0.5]).neighbour_optimal
    False
    """

    selection: Index
    margin: float
    neighbours: NDArray[np.bool_]  # (N,)
    neighbour_optimal: bool  # every token that attains the margin has a lower score than the selected one


def directional_neighbours(keys: Any, gamma: Any, q: Sequence[float] | Vector) -> DirectionalNeighbours:
    """For any direction: selected tokens, margin Gamma_q, the tokens that attain it.

    >>> keys, gamma = [[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]], np.array([1.0, 0.9, 0.0])
    >>> found = directional_neighbours(keys, gamma, [0.0, 1.0])
    >>> found.selection.tolist(), found.margin, found.neighbours.tolist(), found.neighbour_optimal
    ([0], 1.0, [False, True, True], True)
    """
    bags, gamma = _read("directional_neighbours", keys, gamma)
    a = bags.rows @ array_of("directional_neighbours", "q", q, (bags.dim,))
    selection = bags.argmax(a)
    chosen = bags.starts[:-1] + selection
    margins = bags.spread(a[chosen]) - a
    margin = float(np.delete(margins, chosen).min(initial=math.inf))
    near = margins <= margin + ON_THE_MARGIN * max(1.0, abs(margin))
    near[chosen] = False
    return DirectionalNeighbours(selection, margin, near, _score_gap(bags, gamma, chosen, near) > 0)


@dataclass(frozen=True)
class Cone:
    """{p : cos(p, p_mm) >= 1 - mu, |p| >= radius}: inside it descent cannot lose a locally optimal selection.

    That holds if every bag has a token on the margin: delta knows nothing of a bag without one.

    >>> keys, gamma = [[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]], np.array([1.0, 0.9, 0.0])
    >>> cone(keys, gamma, local_optimum(keys, gamma, [0])).mu < 1 / 32  # a narrow one
    True
    """

    mu: float
    radius: float
    margin: float  # Theta = 1 / |p_mm|
    delta: float  # half the least distance of non-neighbours behind neighbours; inf if all are neighbours
    size: float  # A = max |k| / Theta


def cone(keys: Any, gamma: Any, optimum: LocalOptimum) -> Cone:
    """The constants of the cone around a locally optimal direction.

    Theta = 1/|p_mm|, delta = half the least (k_t - k_u)'p_mm of a neighbour t and a non-neighbour u, A = max|k|/Theta,
    mu = (min(1/2, delta)/A)^2 / 8, radius = max(2, 1/delta)/Theta log(64 T Gamma A / gap), Gamma the largest spread of
    scores within a bag.

    >>> keys, gamma = [[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]], np.array([1.0, 0.9, 0.0])
    >>> c = cone(keys, gamma, local_optimum(keys, gamma, [0]))
    >>> round(c.margin, 6), bool(c.mu > 0 and c.radius > 0)
    (1.004988, True)
    """
    bags, gamma = _read("cone", keys, gamma)
    if not isinstance(optimum, LocalOptimum) or np.shape(optimum.neighbours) != gamma.shape:
        raise refusal("cone", "optimum", "be a LocalOptimum of these keys", optimum, "local_optimum finds it")
    if not optimum.holds:
        raise refusal("cone", "optimum", "be locally optimal", f"score gap {optimum.gap:g}")
    theta = 1.0 / float(np.linalg.norm(optimum.solution.p))
    a = bags.rows @ optimum.solution.p
    lowest, behind = np.where(optimum.neighbours, a, math.inf), np.where(optimum.neighbours, -math.inf, a)
    behind[bags.starts[:-1] + optimum.selection] = -math.inf
    # least neighbour minus largest non-neighbour, within each bag that has both
    gaps = np.minimum.reduceat(lowest, bags.starts[:-1]) - bags.max(behind)
    delta = 0.5 * float(gaps.min())
    size = float(np.linalg.norm(bags.rows, axis=1).max()) / theta
    spread = float((bags.max(gamma) + bags.max(-gamma)).max())
    gap = min(optimum.gap, spread) if math.isfinite(optimum.gap) else spread
    mu = (min(0.5, delta) / size) ** 2 / 8
    radius = max(2.0, 1.0 / delta) / theta * math.log(max(64 * int(bags.sizes.max()) * spread * size / gap, 1.0))
    return Cone(mu, radius, theta, delta, size)


def smoothness(values: Any, v: Sequence[float] | Vector, W: Any, M0: float = 0.25, M1: float = 1.0) -> float:
    """L_p, the constant of the descent theorems: the gradient in p is L_p-Lipschitz, steps up to 1/L_p descend.

    L_p = mean of M0 |v|^2 |W|^2 |X_i|^4 + 3 M1 |v| |W|^2 |X_i|^3 (spectral norms), with |loss'| <= M1 and loss'
    M0-Lipschitz; the defaults are those of the logistic loss.

    >>> smoothness([[[1.0], [0.0]]], [1.0], np.eye(1))
    3.25
    """
    bags = Bags.of(values, "smoothness", "values")
    _check_slopes("smoothness", M0, M1)
    head, keyed = array_of("smoothness", "v", v, (bags.dim,)), array_of("smoothness", "W", W, (-1, bags.dim))
    X = np.array([np.linalg.norm(bags[i], 2) for i in range(len(bags))])
    size, shape = float(np.linalg.norm(head)), float(np.linalg.norm(keyed, 2))
    return float(np.mean(M0 * size**2 * shape**2 * X**4 + 3 * M1 * size * shape**2 * X**3))


def tight_smoothness(keys: Any, gamma: Any, M0: float = 0.25, M1: float = 1.0) -> float:
    """The smaller mean of M0 |gamma_i|^2 |K_i|^2 + 3 M1 |gamma_i| |K_i|^2, for keys and scores of any origin.

    >>> tight_smoothness([[[1.0], [0.0]]], np.array([1.0, 0.0]))
    3.25
    """
    bags = Bags.of(keys, "tight_smoothness")
    _check_slopes("tight_smoothness", M0, M1)
    gamma = read_scores("tight_smoothness", gamma, bags)
    K = np.array([np.linalg.norm(bags[i], 2) for i in range(len(bags))])
    g = np.sqrt(bags.sum(gamma**2))
    return float(np.mean((M0 * g**2 + 3 * M1 * g) * K**2))


def _check_slopes(owner: str, M0: float, M1: float) -> None:
    check_number(owner, "M0", M0, 0.0)
    check_number(owner, "M1", M1, 0.0)


def separating_witness(values: Any, W: Any, v: Sequence[float] | Vector) -> Vector:
    """A p that separates the best tokens when all labels are +1: (W')^+ v / least score gap, v in the range of W'.

    Keys are k = W x, so p'(k_best - k_t) = v'(x_best - x_t) / gap >= 1.

    >>> separating_witness([[[2.0, 0.0], [0.0, 0.0]]], np.eye(2), [1.0, 0.0]).tolist()
    [0.5, 0.0]
    """
    bags = Bags.of(values, "separating_witness", "values")
    direction = array_of("separating_witness", "v", v, (bags.dim,))
    W = array_of("separating_witness", "W", W, (-1, bags.dim))
    gamma = bags.rows @ direction
    best = bags.starts[:-1] + bags.argmax(gamma)
    p = np.linalg.lstsq(W.T, direction, rcond=None)[0]
    if not np.allclose(W.T @ p, direction, rtol=1e-9, atol=1e-12 * float(np.abs(direction).max())):
        raise refusal("separating_witness", "v", "lie in the range of W'", "a v outside of it")
    gap = float(np.delete(bags.spread(gamma[best]) - gamma, best).min(initial=math.inf))
    if not gap:
        raise refusal("separating_witness", "v", "give one token of each bag the largest score", "a tie")
    return np.asarray(p / gap, np.float64)


def has_equal_scores(keys: Any, gamma: Any) -> bool:
    """Whether within each bag all tokens but the best share one score, strictly below it.

    >>> keys = [[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]]
    >>> has_equal_scores(keys, [1.0, 0.9, 0.0]), has_equal_scores(keys, [1.0, 0.5, 0.5])
    (False, True)
    """
    bags, gamma = _read("has_equal_scores", keys, gamma)
    parts = map(np.sort, np.split(gamma, bags.starts[1:-1]))
    return all(len(part) == 1 or bool(part[0] == part[-2] < part[-1]) for part in parts)


def in_general_position(keys: Any, selection: Sequence[int] | Index) -> bool:
    """Whether the rows k_selected - k_t are in general position.

    Every d of them are independent and no d + 1 have the all-ones vector in their column range; by enumeration.

    >>> in_general_position([[[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]], [0])  # two rows on one line
    False
    """
    bags = Bags.of(keys, "in_general_position")
    chosen = bags.chosen(selection, "in_general_position")
    A, d = np.delete(bags.spread(bags.rows[chosen]) - bags.rows, chosen, axis=0), bags.dim
    tuples = math.comb(len(A), min(d, len(A))) + math.comb(len(A), d + 1)
    if tuples > MOST_TUPLES:
        rule, advice = f"have at most {MOST_TUPLES:,} tuples", "draw keys from a density: they are, with probability 1"
        raise refusal("in_general_position", "keys", f"{rule} of rows to test", tuples, advice)
    scale = float(np.abs(A).max(initial=1.0))
    independent = all(
        np.linalg.matrix_rank(A[list(rows)] / scale) == min(d, len(rows))
        for rows in itertools.combinations(range(len(A)), min(d, len(A)))
    )
    return independent and not any(
        _ones_in_range(A[list(rows)]) for rows in itertools.combinations(range(len(A)), d + 1)
    )


def _ones_in_range(rows: Vector) -> bool:
    p, *_ = np.linalg.lstsq(rows, np.ones(len(rows)), rcond=None)
    return bool(np.abs(rows @ p - 1).max() < 1e-9)
