"""The front door of the laboratory: an own problem, in arrays, and all that can be asked of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..base.checks import array_of, check_choice, check_number
from ..base.errors import NotSeparable, refusal
from ..base.threads import one_blas_thread
from ..model.ragged import Bags, Index, Vector
from ..training.loop import Status
from .descent.flow import Flow
from .descent.stack import Stack
from .descent.steps import Descent, DescentState, Growing, MirrorDescent, Normalised, Plain, Polyak, Step, blocks_of
from .descent.trajectory import Run, log_spaced
from .embedding import embedding_problem
from .endings import Endings, run_many
from .paths import joint_path, regularisation_path, set_path
from .problems.heads import Head
from .problems.logits import Cross, Keys
from .problems.losses import Correlation, Exponential, Logistic, MarginLoss, check_loss
from .problems.problem import Problem as Inner
from .problems.reading import Blocks, Reading
from .problems.scores import Fixed, Trained, scores_of
from .problems.sets import Sets
from .selection import LocalOptimum, local_optimum, locally_optimal_selections
from .svm.lq import solve_lq
from .svm.matrix import matrix_problem, solve_matrix
from .svm.nuclear import solve_nuclear
from .svm.problem import MarginProblem
from .svm.sets import solve_set_valued
from .svm.solver import solve

LOSSES: dict[str, MarginLoss] = {"logistic": Logistic(), "exponential": Exponential(), "correlation": Correlation()}
METHODS = ("plain", "normalised", "growing", "polyak", "mirror")
# what is trained: which arguments say so, beside X and loss
TRAINS = {
    "p": ("labels", "v", "head", "scores", "W", "keys"),
    "W": ("labels", "v", "head", "scores", "queries"),
    "vp": ("labels", "W", "keys"),
    "KQ": ("labels", "v", "head", "scores", "queries", "rank"),
    "E": ("labels", "v", "p"),
}


@dataclass(frozen=True, eq=False)
class Optima:
    """The selections that training may end in."""

    best: LocalOptimum | None  # the tokens with the largest scores; None where no direction lets them win
    every: tuple[LocalOptimum, ...]  # all locally optimal ones, in the order of their selections


class Problem:
    """Attention on bags of tokens, and what of it is trained.

    Parameters
    ----------
    X : array (n, T, d), or a list of arrays (T_i, d)
        The tokens. With trains="E": counts (n, V) of the tokens of each document.
    labels : -1 or +1 for each input
    v : array (d,), or head : Head
        The head; the scores of tokens are y_i v'x_it. Or `scores`, one number a token.
    W : array (e, d), or keys : tokens in any form of X
        Keys W x_it of trains="p" or "vp"; the tokens themselves unless given.
    queries : array (n, e), or one vector for all inputs
        Of trains="W" or "KQ", where the logits are x_it'W z_i; the first token of each input unless given.
    rank : int, optional
        Columns of K and Q; as many as a W can need unless given.
    p : array (d,)
        Of trains="E", where it stays as it is: 0 unless given.
    loss : "logistic", "exponential", "correlation", or a loss of `keytokens.lab.problems.losses`
    trains : "p", "W", "vp" (head and p), "KQ" (W = K Q') or "E" (embeddings)

    Examples
    --------
    >>> X = [[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]]
    >>> problem = Problem(X, scores=[[1.0, 0.9, 0.0]])
    >>> [one.selection.tolist() for one in problem.optimal().every]
    [[0], [1]]
    >>> run = problem.flow(norm=1e8)
    >>> run.status.name, bool(run.correlation(problem.svm().p)[-1] > 1 - 1e-12)
    ('FAR_ENOUGH', True)
    """

    def __init__(
        self,
        X: Any,
        labels: Any = None,
        *,
        v: Any = None,
        W: Any = None,
        loss: str | MarginLoss = "logistic",
        trains: str = "p",
        scores: Any = None,
        keys: Any = None,
        queries: Any = None,
        head: Head | None = None,
        rank: int | None = None,
        p: Any = None,
    ) -> None:
        check_choice("Problem", "trains", trains, TRAINS)
        check_number("Problem", "rank", rank, 1, whole=True, none=True)
        given = {"labels": labels, "v": v, "W": W, "scores": scores, "keys": keys, "queries": queries}
        given |= {"head": head, "rank": rank, "p": p}
        _check_together(trains, {name for name, value in given.items() if value is not None})
        if isinstance(loss, str):
            check_choice("Problem", "loss", loss, LOSSES)
        measure = LOSSES[loss] if isinstance(loss, str) else check_loss("Problem", loss)
        self.trains = trains
        self.X: Any = None
        if trains == "E":
            width = np.shape(v)[-1] if np.ndim(v) else 0
            self.inner = embedding_problem("Problem", X, labels, v, np.zeros(width) if p is None else p, measure)
            return
        self.X, psi = Bags.of(X, "Problem", "X"), cast(Head, head)
        if scores is None and head is None and trains != "vp":
            scores = scores_of(labels, self.X, v, "Problem")
        keyed = self.X if keys is None else keys
        if W is not None:
            keyed = self.X.with_rows(self.X.rows @ array_of("Problem", "W", W, (-1, self.X.dim)).T)
        if trains in ("W", "KQ"):
            z = self.X.rows[self.X.starts[:-1]] if queries is None else queries
            linear = head is None
            made = Inner.cross(self.X, z, scores, measure) if linear else Inner.under(self.X, z, labels, psi, measure)
            self.inner = made if trains == "W" else made.factors(min(made.matrix_shape) if rank is None else rank)
        elif trains == "vp":
            self.inner = Inner.joint(labels, self.X, keyed, measure)
        elif head is None:
            self.inner = Inner.of(keyed, scores, measure)
        else:
            self.inner = Inner.with_sets(labels, self.X, head, keyed, loss=measure)

    def __repr__(self) -> str:
        return f"Problem of {len(self.inner.logits.bags)} inputs, trains {self.trains} {self.inner.shapes}"

    # What is there

    @property
    def scores(self) -> Any:
        """gamma_it, (n, T) or a list with an array for each input."""
        flat, bags = self._fixed("scores"), self.inner.logits.bags
        parts = np.split(flat, bags.starts[1:-1])
        return np.stack(parts) if len(set(bags.sizes.tolist())) == 1 else parts

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of what is trained: p; W; v and p; K and Q; E."""
        return self.inner.shapes

    def read(self, *blocks: Any) -> Reading:
        """Logits, attention, scores, loss and their gradient at a point."""
        return self.inner.read(tuple(np.asarray(block, np.float64) for block in blocks))

    def _fixed(self, owner: str) -> Vector:
        if not isinstance(self.inner.rule, Fixed):
            rule = "have scores that training does not move"
            raise refusal(f"Problem.{owner}", "problem", rule, repr(self), "give v or scores; or read them at a point")
        return self.inner.rule.scores

    # What training should find

    def optimal(self) -> Optima:
        """All locally optimal selections with their max-margin directions, and the globally optimal one.

        By enumeration: for problems of up to 200,000 selections. `basins` finds those that runs end in.
        """
        scores, keys = self._fixed("optimal"), self.inner.keys
        try:
            best: LocalOptimum | None = local_optimum(keys, scores, keys.argmax(scores))
        except NotSeparable:
            best = None
        return Optima(best, tuple(locally_optimal_selections(keys, scores)))

    def svm(self, selection: Sequence[int] | Index | None = None, norm: str | float = 2.0) -> Any:
        """The max-margin problem of a selection, of the tokens with the largest scores unless given.

        `norm` is 2 (of p, Frobenius of W), any q > 1 (entry by entry), or "nuclear", which is that of W = K Q'. Under a
        head attention may end on any token of the optimal sets: then that problem is solved.
        """
        if selection is None and isinstance(self.inner.rule, Sets):
            return solve_set_valued(self.inner.keys, self.inner.rule.sets)
        if selection is None:
            selection = self.inner.logits.bags.argmax(self._fixed("svm"))
        factored = self.trains in ("W", "KQ")
        if norm != "nuclear":
            check_number("Problem.svm", "norm", norm, 1.0, above=True)
        elif not factored:
            raise refusal("Problem.svm", "norm", "be a number where no matrix is trained", norm)
        if factored and norm in (2.0, "nuclear"):
            rows = matrix_problem(self.inner.logits.bags, self._cross().queries, selection)
            return solve_nuclear(rows) if norm == "nuclear" else solve_matrix(rows)
        margins = MarginProblem.from_selection(self.inner.keys, selection)
        return solve(margins) if norm == 2.0 else solve_lq(margins, float(norm))

    def path(self, radii: Sequence[float], *, ratio: float = 1.0, starts: int = 12, seed: int = 0) -> Any:
        """The best parameters within balls |p| <= R; jointly |v| <= ratio R for "vp".

        A list of points, each with what is proved of it.
        """
        if self.trains == "vp":
            return joint_path(self.inner, radii, ratio, starts, seed)
        if isinstance(self.inner.rule, Sets):
            return set_path(self.inner, radii, starts, seed)
        return regularisation_path(self._as_p("path"), radii, starts, seed)

    # Training

    def start(self, seed: int | None = None) -> Blocks:
        """Where a run begins unless told: at 0, or small and at random where 0 is stationary (K and Q) and for E."""
        rng = np.random.default_rng(0 if seed is None else seed)
        if seed is None and self.trains not in ("KQ", "E"):
            return tuple(np.zeros(shape) for shape in self.shapes)
        return tuple(rng.normal(size=shape) / np.sqrt(shape[-1]) for shape in self.shapes)

    @one_blas_thread()
    def descend(
        self,
        method: str = "normalised",
        steps: int = 1000,
        eta: float = 0.1,
        *,
        start: Any = None,
        starts: Sequence[Any] | None = None,
        norm: float | None = None,
        floor: float | Sequence[float] = 0.0,
        q: float = 2.0,
        dtype: str | None = None,
        record: Iterable[int] | None = None,
    ) -> Any:
        """Gradient descent: a `Run`, or a list of them from several `starts`.

        The norm of p grows like log t by plain steps and like t by normalised ones: to see a direction in the limit use
        `flow`, which is at norm 1e8 in about a second. Plain descent cannot get there.

        Parameters
        ----------
        method : "normalised", "plain", "growing", "polyak" or "mirror"
            Steps of length eta, eta |g|, eta or 2 % of |p|, (L - L*) / |g| up to eta, eta in the geometry of |.|_q.
        norm : float, optional
            Stop there.
        floor : float, or one for each block
            Steps of length eta |g| / (|g| + floor), as published code has them.
        dtype : "float32" or "float64", optional
            Plain arithmetic as published code runs it, which loses the direction far out. Exact unless given.
        record : steps, optional
            Log-spaced unless given.
        """
        check_choice("Problem.descend", "method", method, METHODS)
        check_number("Problem.descend", "steps", steps, 0, whole=True)
        at = sorted({*map(int, log_spaced(steps) if record is None else record), steps})
        if dtype is not None and norm is not None:
            rule = "be left out in plain arithmetic, which stops where it stops"
            raise refusal("Problem.descend", "norm", rule, norm)
        if dtype is not None:
            every = [self._published(method, at, eta, one, floor, dtype) for one in self._starts(start, starts)]
        elif starts is not None and norm is None and self._stacks(method, floor):
            every = self._together(method, at, eta, self._starts(start, starts), floor, q)
        else:
            exact = Descent(self.inner, _step(method, eta, floor), np.inf if norm is None else norm)
            if method == "mirror":
                exact = MirrorDescent(self.inner, exact.step_rule, exact.norm, q)
            every = [Run.of(exact, one, steps, at) for one in self._starts(start, starts)]
        return every[0] if starts is None else every

    @one_blas_thread()
    def flow(self, norm: float = 1e8, *, start: Any = None, tolerance: float = 1e-8) -> Run:
        """The gradient flow, up to a norm of what is trained; the record has its pieces, as `t`."""
        method = Flow(self.inner, norm, tolerance=tolerance)
        return Run.of(method, self._starts(start, None)[0], 10_000, range(10_000))

    def basins(
        self, starts: Any = 20, *, method: str = "flow", size: float = 1.0, seed: int = 0, **options: Any
    ) -> Endings:
        """Which start ends in which selection: the starts given, or so many at random with |p| = size.

        Along the flow, to norm 1e4 or as `options` say (a fifth of a second a start), or by small normalised steps of
        all starts together ("normalised"), which may differ near the border of two basins. See `run_many`.
        """
        usual = {"norm": 1e4} if method == "flow" else {"steps": 5000, "eta": 0.02}
        problem = self._as_p("basins")
        if np.ndim(starts) == 0:
            check_number("Problem.basins", "starts", starts, 1, whole=True)
            away = np.random.default_rng(seed).normal(size=(int(starts), problem.keys.dim))
            starts = size * away / np.linalg.norm(away, axis=1, keepdims=True)
        return run_many([problem] * len(starts), method=method, starts=starts, **{**usual, **options})

    # Between p and W

    def embed(self, u: Any) -> Problem:
        """The same problem with W trained and one query u for all inputs: logits k_it'W u.

        Descent on W by steps eta / |u|^2 from W = p u'/|u|^2 stays p(t) u'/|u|^2, whatever the loss (see `from_p`).
        """
        if self.trains != "p" or not isinstance(self.inner.rule, Fixed):
            raise refusal("Problem.embed", "problem", 'be one that trains "p", with given scores', repr(self))
        query = array_of("Problem.embed", "u", u, (-1,))
        return Problem(self.inner.keys, scores=self.inner.scores, queries=query, loss=self.inner.loss, trains="W")

    def from_p(self, p: Any) -> Vector:
        """W = p u'/|u|^2, which has the logits of p, where all inputs have the query u."""
        u = self._query("from_p")
        return np.outer(array_of("Problem.from_p", "p", p, (self.shapes[0][0],)), u) / (u @ u)

    def to_p(self, W: Any) -> Vector:
        """And back: p = W u."""
        return array_of("Problem.to_p", "W", W, self.shapes[0]) @ self._query("to_p")

    def _query(self, owner: str) -> Vector:
        z = self._cross().queries if self.trains == "W" else np.zeros((1, 1))
        if not z.any() or (z != z[0]).any():
            raise refusal(f"Problem.{owner}", "problem", 'be one of `embed`: trains="W", one query', repr(self))
        return z[0]

    # Pictures

    def plot(self, runs: Sequence[Run] | Run, direction: Any = None) -> Any:
        """A matplotlib Figure: paths in the plane with the keys, if p has two entries, and directions against steps."""
        from .pictures import run_picture

        return run_picture([runs] if isinstance(runs, Run) else list(runs), direction, self.inner.keys)

    def plot_basins(self, extent: float = 2.0, resolution: int = 15, *, method: str = "normalised") -> Any:
        """A matplotlib Figure of the plane of p: the selection that each start ends in (`basins`)."""
        from .pictures import basins_picture

        return basins_picture(self, extent, resolution, method)

    # Inside

    def _cross(self) -> Cross:
        logits: Any = self.inner.logits
        return logits if isinstance(logits, Cross) else logits.inner

    def _as_p(self, owner: str) -> Inner:
        """W as one long p."""
        scores = self._fixed(owner)
        return self.inner if isinstance(self.inner.logits, Keys) else Inner.of(self.inner.keys, scores, self.inner.loss)

    def _starts(self, start: Any, starts: Sequence[Any] | None) -> list[Any]:
        if starts is None:
            return [self.start() if start is None else start]
        if start is not None or (np.ndim(starts) == 0 and not isinstance(starts, Iterable)) or not len(starts):
            raise refusal("Problem.descend", "starts", "be a list of starts, in the place of `start`", starts)
        return list(starts)

    def _stacks(self, method: str, floor: Any) -> bool:
        sizes = set(self.inner.logits.bags.sizes.tolist())
        alike = isinstance(self.inner.rule, Fixed) and len(sizes) == 1 and np.ndim(floor) == 0
        if self.trains == "KQ":
            return alike and method == "normalised" and not floor
        return alike and method in ("plain", "normalised", "mirror")

    def _together(self, method: str, at: list[int], eta: float, starts: list[Any], floor: Any, q: float) -> list[Run]:
        if self.trains == "KQ":
            stack = Stack.repeated(Inner(self._cross(), self.inner.rule, self.inner.loss), len(starts))
            begun = [blocks_of("Problem.descend", self.inner, one) for one in starts]
            K, Q = (np.stack(factor) for factor in zip(*begun, strict=True))
            passed = stack.factor_path(at, eta, K, Q)
            return [self._passed(at, [(K[k], Q[k]) for K, Q in passed]) for k in range(len(starts))]
        stack = Stack.repeated(self.inner, len(starts))
        begin = np.stack([array_of("Problem.descend", "starts", one, self.shapes[0]).ravel() for one in starts])
        if method == "mirror":
            seen = stack.mirror_path(q, at, begin, eta, floor)
        else:
            seen = list(stack.path(at, eta, begin, floor, plain=method == "plain"))
        return [self._passed(at, [(p[k].reshape(self.shapes[0]),) for p in seen]) for k in range(len(starts))]

    def _passed(self, at: list[int], blocks: Iterable[Blocks]) -> Run:
        points = [DescentState(self.inner, one, t) for t, one in zip(at, blocks, strict=True)]
        return Run.through(points, Descent(self.inner, Normalised(1.0)).verdict(points[-1]) or Status.OUT_OF_STEPS)

    def _published(self, method: str, at: list[int], eta: float, start: Any, floor: Any, dtype: str) -> Run:
        from .descent.published import PlainProblem, published

        if method not in ("plain", "normalised"):
            rule = 'be left out where the method is not "plain" or "normalised"'
            raise refusal("Problem.descend", "dtype", rule, dtype)
        bags, logits = self.inner.logits.bags, self.inner.logits
        n, sizes = len(bags), set(bags.sizes.tolist())
        if len(sizes) > 1 or not isinstance(self.inner.rule, (Fixed, Trained)):
            rule = "be left out where inputs differ in length, under a head, and for embeddings"
            raise refusal("Problem.descend", "dtype", rule, dtype)
        keys = (logits.keys if isinstance(logits, Keys) else bags).rows.reshape(n, sizes.pop(), -1)
        parts: dict[str, Any] = {"loss": self.inner.loss.name}
        if isinstance(self.inner.rule, Fixed):
            parts["scores"] = self.inner.scores.reshape(n, -1)
        else:
            parts |= {"values": self.X.rows.reshape(n, -1, self.X.dim), "labels": self.inner.labels}
        if not isinstance(logits, Keys):
            parts["queries"] = self._cross().queries
        blocks = blocks_of("Problem.descend", self.inner, start)
        plain = PlainProblem(keys, **parts)
        normalised = method == "normalised"
        seen = published(plain, blocks, at[-1], eta, floor, dtype=dtype, normalised=normalised, at=at)
        return self._passed(at, [tuple(np.asarray(part, np.float64) for part in one) for one in seen])


def _step(method: str, eta: float, floor: Any) -> Step:
    if np.any(floor) and method not in ("normalised", "mirror"):
        raise refusal("Problem.descend", "floor", "be 0 where steps are not normalised", floor)
    others: dict[str, type[Plain | Growing | Polyak]] = {"plain": Plain, "growing": Growing, "polyak": Polyak}
    if method in others:
        return others[method](eta)
    return Normalised(eta, floor if np.ndim(floor) == 0 else tuple(floor))


def _check_together(trains: str, given: set[str]) -> None:
    """Which arguments go with which, in one sentence."""
    for name in sorted(given - set(TRAINS[trains])):
        raise refusal("Problem", name, f'be left out where trains="{trains}"', "a value", f"known: {TRAINS[trains]}")
    heads = given & {"v", "head", "scores"}
    if trains in ("p", "W", "KQ") and len(heads) != 1:
        raise refusal("Problem", "scores", "be given, or one of v and head", sorted(heads) or "none of them")
    if "scores" in heads and "labels" in given:
        raise refusal("Problem", "labels", "be left out where scores are given", "labels", "scores have their signs")
    if "scores" not in heads and "labels" not in given:
        raise refusal("Problem", "labels", "be given: -1 or +1 for each input", "none")
    if trains == "E" and "v" not in given:
        raise refusal("Problem", "v", "be given: the head that the embeddings are trained for", "none")
    if {"W", "keys"} <= given:
        raise refusal("Problem", "keys", "be left out where W makes them", "both")
