"""Documents whose labels are planted: each holds one token that decides and others that do not care.

The vocabulary splits into completely positive tokens, which occur only under the label +1, completely negative ones,
only under -1, and irrelevant ones. What the theory says of such data in closed form stands here too, in terms of
alpha_s, the average signed frequency of a token:

    alpha_s = sum_i w_i y_i c_is / T_i        freq_s = sum_i w_i c_is / T_i        w_i = 1/n, or class-balanced
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ....base.checks import check_number
from ....base.errors import refusal
from ....model.ragged import Index, Vector


@dataclass(frozen=True, eq=False)
class Documents:
    """Sequences of tokens 0 .. V - 1, not all of one length perhaps, with labels -1 or +1."""

    tokens: tuple[Index, ...]
    labels: Vector
    V: int

    @classmethod
    def of(cls, tokens: Sequence[Any], labels: Any, V: int) -> Documents:
        """From lists of tokens.

        >>> Documents.of([[0, 1, 1], [2]], [1, -1], 3).counts.toarray().tolist()
        [[1.0, 2.0, 0.0], [0.0, 0.0, 1.0]]
        """
        rows = tuple(np.asarray(row, np.intp) for row in tokens)
        y = np.asarray(labels, np.float64)
        if not rows or not all(row.ndim == 1 and len(row) for row in rows):
            raise refusal("Documents.of", "tokens", "be a list of documents with at least one token each", tokens)
        if min(row.min() for row in rows) < 0 or max(row.max() for row in rows) >= V:
            raise refusal("Documents.of", "tokens", f"be whole numbers from 0 to {V - 1}", tokens)
        if y.shape != (len(rows),) or not (np.abs(y) == 1).all():
            raise refusal("Documents.of", "labels", f"be -1 or +1 for each of the {len(rows)} documents", labels)
        return cls(rows, y, V)

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def lengths(self) -> Vector:
        return np.array([len(row) for row in self.tokens], np.float64)

    @cached_property
    def counts(self) -> sparse.csr_matrix:
        """(n, V)."""
        document = np.repeat(np.arange(len(self)), self.lengths.astype(np.intp))
        entries = (np.ones(len(document)), (document, np.concatenate(self.tokens)))
        counts = sparse.csr_matrix(entries, shape=(len(self), self.V))
        counts.sum_duplicates()
        return counts

    @cached_property
    def shares(self) -> sparse.csr_matrix:
        """(n, V) c_is / T_i: the attention at p = 0."""
        return sparse.csr_matrix(sparse.diags(1 / self.lengths) @ self.counts)

    @property
    def even(self) -> Vector:
        """(n,) the weights of the mean."""
        return np.full(len(self), 1 / len(self))

    @property
    def balanced(self) -> Vector:
        """(n,) weights 1/(2 P(y_i)) over n: half of the weight on each label."""
        return np.where(self.labels > 0, 1 / (self.labels > 0).sum(), 1 / (self.labels < 0).sum()) / 2

    def frequency(self, weights: Vector | None = None) -> Vector:
        """(V,) freq_s."""
        return self.shares.T @ (self.even if weights is None else weights)

    def signed_frequency(self, weights: Vector | None = None) -> Vector:
        """(V,) alpha_s.

        >>> Documents.of([[0, 1], [1, 1]], [1, -1], 2).signed_frequency().tolist()
        [0.25, -0.25]
        """
        return self.shares.T @ (self.labels * (self.even if weights is None else weights))

    def posterior_difference(self, weights: Vector | None = None) -> Vector:
        """(V,) Delta_s = P(+1 | s) - P(-1 | s), weighed like alpha: alpha_s = freq_s Delta_s; 0 if s is absent.

        With `balanced` weights this is (r+ - r-)/(r+ + r-), r the share of s among the tokens of each class.
        """
        w = self.even if weights is None else weights
        above, below = self.shares.T @ (w * (self.labels > 0)), self.shares.T @ (w * (self.labels < 0))
        return (above - below) / np.where(above + below > 0, above + below, 1.0)


@dataclass(frozen=True, eq=False)
class Planted(Documents):
    """Tokens 0 .. positives - 1 are completely positive, the next `negatives` completely negative, the others neither.

    `important` (n,) is the token of each document that decides its label.
    """

    important: Index
    positives: int
    negatives: int

    @property
    def irrelevants(self) -> int:
        return self.V - self.positives - self.negatives

    @cached_property
    def kinds(self) -> Vector:
        """(V,) +1 completely positive, -1 completely negative, 0 irrelevant."""
        return np.repeat([1.0, -1.0, 0.0], [self.positives, self.negatives, self.irrelevants])

    @cached_property
    def cooccurs(self) -> bool:
        """Whether every important token meets every irrelevant one in some document."""
        present = (self.counts > 0).astype(np.float64)
        together = (present.T @ present).toarray()
        return bool((together[self.kinds != 0][:, self.kinds == 0] > 0).all())


def planted(
    rng: np.random.Generator,
    n: int,
    T: int,
    positives: int,
    negatives: int,
    irrelevants: int,
    *,
    mirrored: bool = False,
    n_positive: int | None = None,
) -> Planted:
    """n documents of length T: an important token, taken in turn, at a random place among random irrelevant ones.

    The first half is positive, or `n_positive` documents are. `mirrored`: document i and document i + n/2 hold the same
    irrelevant tokens, so that their average signed frequency is 0 exactly.

    >>> data = planted(np.random.default_rng(0), 8, 3, 2, 1, 4, mirrored=True)
    >>> data.signed_frequency().round(12).tolist()
    [0.083333333333, 0.083333333333, -0.166666666667, 0.0, 0.0, 0.0, 0.0]
    """
    for name, value in {"positives": positives, "negatives": negatives, "irrelevants": irrelevants, "T": T}.items():
        check_number("planted", name, value, 1, whole=True)
    check_number("planted", "n", n, 2, whole=True)
    above = n // 2 if n_positive is None else n_positive
    if not 0 < above < n or (mirrored and 2 * above != n):
        raise refusal("planted", "n_positive", f"be below {n}, and half of it if mirrored", above, "use an even n")
    turn = np.concatenate([np.arange(above) % positives, positives + np.arange(n - above) % negatives])
    tokens = positives + negatives + rng.integers(0, irrelevants, (n, T))
    places = rng.integers(0, T, n)
    if mirrored:
        tokens[above:], places[above:] = tokens[:above], places[:above]
    tokens[np.arange(n), places] = turn
    labels = np.where(np.arange(n) < above, 1.0, -1.0)
    return Planted(tuple(tokens), labels, positives + negatives + irrelevants, turn, positives, negatives)


def random_labels(rng: np.random.Generator, n: int, T: int, V: int) -> Documents:
    """Documents without structure: uniform tokens, labels by coin, both of them present."""
    labels = rng.choice([-1.0, 1.0], n)
    labels[:2] = [1.0, -1.0]
    return Documents(tuple(rng.integers(0, V, (n, T))), labels, V)


# What is known of planted documents in closed form -------------------------------------------------------------------


def loss_of_selection(documents: Documents, b: Vector, chosen: Index) -> float:
    """L with all attention on one token of each document; L_* where these are the important ones."""
    return float(np.mean(np.logaddexp(0, -documents.labels * b[chosen])))


def alternative_loss(data: Planted, b: Vector) -> float:
    """L where positive documents select their token and negative ones irrelevant tokens of value 0."""
    return float(np.mean(np.where(data.labels > 0, np.logaddexp(0, -b[data.important]), np.log(2))))


def barrier(data: Planted, b: Vector) -> float:
    """(1/n) log(1 + exp(-u)), u the largest y_i b_s of an irrelevant token s of document i.

    A run that leaves out the important token of one document ends at this loss at least; a flow never climbs. So where
    a flow starts below it, every document selects its important token.
    """
    counts = data.counts
    y = np.repeat(data.labels, np.diff(counts.indptr))
    irrelevant = data.kinds[counts.indices] == 0
    top = float((y * b[counts.indices])[irrelevant].max(initial=-np.inf))
    return float(np.logaddexp(0, -top)) / len(data)


@dataclass(frozen=True, eq=False)
class ClosedForm:
    """p_* of the selection of all important tokens, for E = E0 + (eta/2) alpha v', E0 orthonormal and orthogonal to v.

    Every row is tight, so the logits are beta + 1 on important tokens of both signs and beta on irrelevant ones.
    """

    p: Vector
    z: Vector  # (V,) its coordinates along E0
    along_v: float  # p'v / |v|
    logits: Vector  # (V,) E_s'p
    valid: bool  # the multipliers that this needs are not negative

    @property
    def margin(self) -> float:
        """1/|p|, by the coordinates."""
        return 1 / float(np.sqrt(self.z @ self.z + self.along_v**2))


def closed_form(data: Planted, E0: Vector, v: Vector, eta: float) -> ClosedForm:
    """The least |p|^2 = sum_s z_s^2 + c^2 with all rows tight: p = sum_s z_s E0_s + c v/|v|.

    z_s = [s important] + beta - k alpha_s c with k = eta |v| / 2, and beta and c solve two normal equations. |z_s| is
    the sum of the multipliers of token s, so important tokens need z_s >= 0 and irrelevant ones z_s <= 0; then this is
    the max-margin direction, provided every important token meets every irrelevant one. Balanced labels give c = 0,
    beta = -K/(K + M) and the margin sqrt(1/K + 1/M) for K important and M irrelevant tokens.
    """
    size = float(np.linalg.norm(v))
    shift = eta * size / 2 * data.signed_frequency()
    important = np.abs(data.kinds)
    normal = np.array([[data.V, -shift.sum()], [-shift.sum(), 1 + shift @ shift]])
    beta, c = np.linalg.solve(normal, np.array([-important.sum(), shift @ important]))
    z = important + beta - shift * c
    valid = bool((z[important > 0] >= 0).all() and (z[important == 0] <= 0).all())
    return ClosedForm(z @ E0 + c * v / size, z, float(c), important + beta, valid)
