"""The two stages of training that the theory of trained embeddings speaks of, exact and measured.

Stage 1, one full-batch gradient step on the embeddings. With attention Q_s, values b = E v and g_i = sigma(-y_i f_i):
    -dL/dE_s = sum_i w_i y_i g_i Q_s(i) (v + (b_s - f_i) p)  =  alpha_s/2 v + error_s
Stage 2, gradient flow on p with the embeddings frozen, in the row space of E, followed to any norm:
    -dL/dp = sum_s B_s E_s,   B_s = (1/n) sum_i g_i y_i Q_s(i) (b_s - f_i)
and the max-margin direction of whatever the flow selects, from a solver that never sees the flow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ....base.errors import refusal
from ....model.ragged import Bags, Index, Vector, log_softmax
from ....training.loop import Status, run
from ...descent.flow import Flow, FlowState
from ...problems.geometry import misalignment
from ...problems.losses import Scaled, log_abs
from ...problems.problem import Problem
from ...svm.problem import MarginProblem
from ...svm.solution import Solution
from ...svm.solver import solve, solved
from ..max_margin.assumptions import is_separable
from .data import Documents


@dataclass(frozen=True, eq=False)
class Start:
    """Where training begins."""

    E: Vector  # (V, d)
    p: Vector  # (d,)
    v: Vector  # (d,), fixed throughout


def gaussian_start(rng: np.random.Generator, V: int, d: int) -> Start:
    """E_s and p from N(0, I/d), v of length 1 with entries +-1/sqrt(d): all inner products are of order 1/sqrt(d)."""
    E, p = rng.normal(size=(V, d)) / np.sqrt(d), rng.normal(size=d) / np.sqrt(d)
    return Start(E, p, rng.choice([-1.0, 1.0], d) / np.sqrt(d))


def ideal_start(rng: np.random.Generator, V: int, d: int) -> Start:
    """What that becomes as d grows: orthonormal rows of E, orthogonal to v, and p = 0; needs d > V."""
    if d <= V:
        raise refusal("ideal_start", "d", f"be above V = {V}: that many orthonormal rows, and v", d)
    frame = np.linalg.qr(rng.normal(size=(d, V + 1)))[0].T
    return Start(frame[:V], np.zeros(d), frame[V])


# Stage 1: one step on the embeddings ---------------------------------------------------------------------------------


def attention(documents: Documents, a: Vector) -> sparse.csr_matrix:
    """(n, V) Q, from the attention logits a = E p of all tokens."""
    C = documents.counts
    bags = Bags(np.empty((C.nnz, 0)), C.indptr.astype(np.intp))
    return sparse.csr_matrix((np.exp(log_softmax(bags, a[C.indices] + np.log(C.data))), C.indices, C.indptr), C.shape)


def loss(documents: Documents, E: Vector, p: Vector, v: Vector, weights: Vector | None = None) -> float:
    """L = sum_i w_i log(1 + exp(-y_i f_i))."""
    f = attention(documents, E @ p) @ (E @ v)
    return float((documents.even if weights is None else weights) @ np.logaddexp(0, -documents.labels * f))


def embedding_gradient(documents: Documents, start: Start, weights: Vector | None = None) -> Vector:
    """(V, d) dL/dE: every row lies in the span of v and p."""
    Q, b = attention(documents, start.E @ start.p), start.E @ start.v
    f = Q @ b
    force = _forces(documents, f) * (documents.even if weights is None else weights)
    along_v, drawn = Q.T @ force, Q.T @ (force * f)
    return -np.outer(along_v, start.v) - np.outer(along_v * b - drawn, start.p)


def _forces(documents: Documents, f: Vector) -> Vector:
    """(n,) y_i sigma(-y_i f_i); as exp(-log(1 + e^m)), which does not round to 0 early."""
    y = documents.labels
    return np.asarray(y * np.exp(-np.logaddexp(0, y * f)))


@dataclass(frozen=True, eq=False)
class Step:
    """Stage 1: E1 = E0 - eta dL/dE, all documents at once; and how far that is from eta alpha_s/2 v."""

    documents: Documents
    start: Start
    eta: float = 1.0
    weights: Vector | None = None  # of the documents: None for 1/n

    def __post_init__(self) -> None:
        if len(self.start.E) != self.documents.V:
            rule = f"have an embedding for each of the {self.documents.V} tokens"
            raise refusal("Step", "start", rule, self.start.E.shape)

    @cached_property
    def moved(self) -> Vector:
        """(V, d) (E1 - E0) / eta."""
        return -embedding_gradient(self.documents, self.start, self.weights)

    @cached_property
    def E(self) -> Vector:
        """E1."""
        return self.start.E + self.eta * self.moved

    @cached_property
    def alpha(self) -> Vector:
        return self.documents.signed_frequency(self.weights)

    @cached_property
    def frequency(self) -> Vector:
        return self.documents.frequency(self.weights)

    @cached_property
    def leading(self) -> Vector:
        """(V, d) alpha_s/2 v: the 1/2 is minus the slope of the loss at 0."""
        return np.outer(self.alpha / 2, self.start.v)

    @cached_property
    def error(self) -> Vector:
        """(V,) |(E1_s - E0_s)/eta - alpha_s/2 v|."""
        return np.asarray(np.linalg.norm(self.moved - self.leading, axis=1))

    @cached_property
    def error_bound(self) -> Vector:
        """(V,) the error is at most freq_s ([h - 1/2] |v| + 2 h e_v |p|), h = (1/2 + e_v/4) exp(2 e_a).

        e_a and e_v are the largest |p'E_s| and |v'E_s| of the tokens that occur.
        """
        occurs = self.frequency > 0
        e_a = float(np.abs(self.start.E @ self.start.p)[occurs].max())
        e_v = float(np.abs(self.start.E @ self.start.v)[occurs].max())
        h = (0.5 + e_v / 4) * np.exp(2 * e_a)
        size_v, size_p = np.linalg.norm(self.start.v), np.linalg.norm(self.start.p)
        return np.asarray(self.frequency * ((h - 0.5) * size_v + 2 * h * e_v * size_p))

    @property
    def relative_error(self) -> float:
        """The largest error_s / freq_s."""
        occurs = self.frequency > 0
        return float((self.error[occurs] / self.frequency[occurs]).max())

    @cached_property
    def singular_values(self) -> Vector:
        """Of E1 - E0, over eta: two at most are not 0."""
        return np.asarray(np.linalg.svd(self.moved, compute_uv=False))

    @cached_property
    def gain(self) -> Vector:
        """(V,) (b1_s - b0_s) / eta, the change of the values."""
        return np.asarray(self.moved @ self.start.v)

    @property
    def slope(self) -> float:
        """Of the regression of the gain on alpha; |v|^2/2 in theory."""
        return float(np.polyfit(self.alpha, self.gain, 1)[0])

    @property
    def correlation(self) -> float:
        """Between the gain and alpha."""
        return float(np.corrcoef(self.alpha, self.gain)[0, 1])

    @property
    def alignment(self) -> Vector:
        """(V,) |cos| between the move of a token and v."""
        sizes = np.linalg.norm(self.moved, axis=1) * np.linalg.norm(self.start.v)
        return np.abs(self.gain) / np.where(sizes > 0, sizes, 1.0)

    @property
    def b(self) -> Vector:
        """(V,) the values after the step."""
        return self.E @ self.start.v


def indicator_direction(E: Vector, token: int, orthogonal_to: Sequence[Vector]) -> tuple[Vector, float]:
    """The shortest q with E q = 1 at one token and 0 at the others, orthogonal to given vectors; and the residual.

    The residual is the largest entry that is missed: 0 up to rounding where d >= V + the number of vectors.
    """
    rows = np.concatenate([E, np.stack([np.asarray(u) / np.linalg.norm(u) for u in orthogonal_to])])
    target = (np.arange(len(rows)) == token).astype(np.float64)
    q = np.linalg.lstsq(rows, target, rcond=None)[0]
    return q, float(np.abs(rows @ q - target).max())


# Stage 2: the flow on p ----------------------------------------------------------------------------------------------


def token_pulls(documents: Documents, E: Vector, v: Vector, p: Vector) -> Vector:
    """(V,) B with -dL/dp = sum_s B_s E_s and da/dt = E E'B; plain numbers, good until the attention saturates."""
    Q, b = attention(documents, E @ p), E @ v
    f = Q @ b
    force = _forces(documents, f) / len(documents)
    return np.asarray((Q.T @ force) * b - Q.T @ (force * f))


def token_pull(problem: Problem, p: Vector, token: int) -> Scaled:
    """B_s of one token at any p, as a sum over pairs: (1/n) sum_i g_i Q_s Q_u (gamma_s - gamma_u), gamma the scores.

    No difference of nearly equal numbers, no underflow. If s has the largest score in every document that holds it, no
    term is negative. The scores are y b for two classes; for several those of `Leads`, sum_k P_k m_k over sum_k P_k.
    """
    reading = problem.read((p,))
    bags, log_Q = reading.bags, reading.log_attention
    own, score = np.full(len(bags), -np.inf), np.zeros(len(bags))
    held = problem.counts.indices == token
    own[bags.bag[held]], score[bags.bag[held]] = log_Q[held], reading.scores[held]
    lead = bags.spread(score) - reading.scores
    per_document = own + reading.loss.log_abs_slope(reading.margins) - np.log(len(bags))
    return Scaled.total(np.sign(lead), bags.spread(per_document) + log_Q + log_abs(lead))


@dataclass(frozen=True, eq=False)
class Run:
    """The flow on p, seen at some norms of p.

    Everything is in the row space of E, the only part of p that matters: `basis` (r, d) maps back, p = basis'p_r.
    """

    documents: Documents
    problem: Problem  # reduced
    basis: Vector
    states: tuple[FlowState, ...]  # at the norms, then where the run ended if it did not reach the last of them
    status: Status
    path: dict[str, Vector]  # along all pieces: norm, loss, log_time

    @property
    def p(self) -> Vector:
        """(d,) where the run ended."""
        return np.asarray(self.states[-1].p @ self.basis)

    @property
    def norm(self) -> float:
        return self.states[-1].norm

    @property
    def loss(self) -> float:
        return self.states[-1].reading.value

    @property
    def arrived(self) -> bool:
        return self.status is Status.FAR_ENOUGH

    def gaps(self, k: int = -1) -> Vector:
        """(nnz,) at state k, how far the logit of each token of each document is below the document's largest."""
        bags = self.states[k].reading.bags
        a = (self.problem.embeddings @ self.states[k].p)[self.problem.counts.indices]
        return bags.spread(bags.max(a)) - a

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """(nnz,) tokens that keep attention: between the last two states their gap does not grow like the norm."""
        first, last = self.gaps(-2), self.gaps(-1)
        before, after = self.states[-2].norm, self.states[-1].norm
        return (last < 1) | (last * np.sqrt(before) < first * np.sqrt(after))

    @cached_property
    def sets(self) -> list[list[int]]:
        """The selected tokens of each document: one, or several that tie."""
        starts, tokens = self.problem.counts.indptr, self.problem.counts.indices
        kept = [np.flatnonzero(self.kept[i:j]) + i for i, j in pairwise(starts.tolist())]
        return [tokens[places].tolist() for places in kept]

    @property
    def selects_one(self) -> bool:
        return all(len(tokens) == 1 for tokens in self.sets)

    def leading(self, important: Index) -> float:
        """The fraction of documents whose important token has the largest logit at the end, tied or not."""
        bags = self.states[-1].reading.bags
        first = bags.starts[:-1] + bags.argmax(-self.gaps())
        return float(np.mean(self.problem.counts.indices[first] == important))

    @cached_property
    def solution(self) -> Solution | None:
        """The max-margin problem of the selection, ties as equalities; None where no direction selects like this."""
        return solved(solve, MarginProblem.from_vocabulary(self.problem.embeddings, self.problem.counts, self.sets))

    def separates(self, important: Index) -> bool:
        """Whether any direction at all lets these tokens win, each its document."""
        return is_separable(MarginProblem.from_vocabulary(self.problem.embeddings, self.problem.counts, important))

    def misalignment(self, k: int = -1) -> float:
        """1 - cos between p at state k and the max-margin direction of the final selection; inf without one."""
        if self.solution is None or not self.solution.p.any():
            return np.inf
        return misalignment(self.states[k].p, self.solution.p)

    def margin_ratio(self, k: int = -1) -> float:
        """The least margin of a losing token at state k, over |p|, beside the largest possible one, 1/|p_*|."""
        if self.solution is None or not self.solution.p.any():
            return -np.inf
        bags = self.states[k].reading.bags
        a = (self.problem.embeddings @ self.states[k].p)[self.problem.counts.indices]
        lowest = np.minimum.reduceat(np.where(self.kept, a, np.inf), bags.starts[:-1])
        margins = (bags.spread(lowest) - a)[~self.kept]
        return float(margins.min() * self.solution.norm / self.states[k].norm)


def second_stage(step: Step, norms: Sequence[float], start: Vector | None = None, **options: Any) -> Run:
    """Stage 2 after stage 1: from the step's own p, or from another `start`."""
    return follow(step.documents, step.E, step.start.v, step.start.p if start is None else start, norms, **options)


def follow(documents: Documents, E: Vector, v: Vector, start: Vector, norms: Sequence[float], **options: Any) -> Run:
    """The gradient flow on p with E frozen, up to the last of the given norms; `options` go to the flow.

    >>> documents = Documents.of([[0, 1], [0, 2]], [1, 1], 3)
    >>> E = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> run = follow(documents, E, np.array([1.0, 0.0]), np.zeros(2), [1e3, 1e4])
    >>> run.sets, run.misalignment() < 1e-8
    ([[0], [0]], True)
    """
    wanted = np.asarray(norms, np.float64)
    if wanted.ndim != 1 or len(wanted) < 2 or not (np.diff(wanted) > 0).all():
        raise refusal("follow", "norms", "be two or more increasing numbers", norms, "the last two show what grows")
    basis = np.eye(E.shape[1]) if E.shape[0] >= E.shape[1] else np.linalg.qr(E.T)[0].T
    problem = Problem.vocabulary(E @ basis.T, documents.counts, documents.labels, basis @ v)
    clock, states, status = _Clock(), [], Status.FAR_ENOUGH
    at = begin = basis @ start
    for norm in wanted.tolist():
        outcome = run(Flow(problem, norm, **options), at, 10_000, clock)
        status, at = outcome.status, outcome.state.p
        states.append(outcome.state)
        if status is not Status.FAR_ENOUGH:
            break
    if len(states) == 1:
        states.insert(0, Flow(problem, wanted[0]).init(begin))
    return Run(documents, problem, basis, tuple(states), status, clock.path)


class _Clock:
    """Watches a flow in arc length and tells the time: dt = ds / |grad|, log-linear between two looks."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, float, float]] = []
        self.arc = self.slow = 0.0
        self.log_time = -np.inf

    def __call__(self, state: FlowState) -> None:
        slow = -float(state.log_sizes[-1])
        moved = state.arc - self.arc if state.arc else 0.0  # a new flow begins at 0, where the last one ended
        if moved > 0:
            self.log_time = float(np.logaddexp(self.log_time, _log_mean(self.slow, slow) + np.log(moved)))
        if moved > 0 or not self.rows:
            self.rows.append((state.norm, state.reading.value, self.log_time))
        self.arc, self.slow = state.arc, slow

    @property
    def path(self) -> dict[str, Vector]:
        return dict(zip(("norm", "loss", "log_time"), np.array(self.rows).reshape(-1, 3).T, strict=True))


def _log_mean(x: float, y: float) -> float:
    """log of the mean of exp over the segment from x to y."""
    low, width = min(x, y), abs(x - y)
    if width < 1e-8:
        return low + width / 2
    return float(low + width + np.log(-np.expm1(-width)) - np.log(width))


PAPER = "Trained Embeddings"
AFTER = "keytokens, after " + PAPER


def random_documents(rng: np.random.Generator, most: int = 8) -> Documents:
    """Documents of different lengths with labels by coin; every token occurs."""
    n, V = int(rng.integers(2, most)), int(rng.integers(2, most))
    tokens = [rng.integers(0, V, rng.integers(1, 9)) for _ in range(n)]
    tokens[0] = np.concatenate([tokens[0], np.arange(V)])
    labels = rng.choice([-1.0, 1.0], n)
    labels[:2] = [1.0, -1.0]
    return Documents.of(tokens, labels, V)


def small_enough(start: Start, suffices: Callable[[Start], bool]) -> Start:
    """The start, or with E and p halved, as often as it takes: the smaller it is, the less b differs from eta alpha/2.

    So says te.one-step-bound. Most starts do as they are; frequent tokens in few dimensions need a smaller one.
    """
    for _ in range(20):
        if suffices(start):
            break
        start = replace(start, E=start.E / 2, p=start.p / 2)
    return start
