"""The space in which steps on the embeddings stay, the dimensions that they need, and the step of several classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..claim import Claim, Counter, Hypothesis
from ..multiclass import Classes, class_frequencies, multiclass_gradient, planted_classes
from ..planted import random_labels
from ..two_stage import Start, embedding_gradient, gaussian_start, indicator_direction, token_pulls
from .common import Array
from .trained import AFTER, PAPER, Training, random_documents

__all__ = ["CLAIMS"]


# --- the space of the step -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Steps:
    """Several steps on E; perhaps p moves too in between."""

    case: Training
    count: int
    p_moves: bool = False

    @cached_property
    def moved(self) -> Array:
        documents, start = self.case.documents, self.case.start
        E, p = start.E, start.p
        for _ in range(self.count):
            here = Start(E, p, start.v)
            if self.p_moves:
                p = p + self.case.eta * token_pulls(documents, E, start.v, p) @ E
            E = E - self.case.eta * embedding_gradient(documents, here, self.case.weights)
        return np.asarray(E - start.E)


def _steps(rng: np.random.Generator) -> Steps:
    documents, d = random_documents(rng, 14), int(rng.integers(3, 20))
    start = Start(rng.normal(size=(documents.V, d)), rng.normal(size=d), rng.normal(size=d))
    return Steps(Training(documents, start, float(rng.uniform(0.1, 2))), int(rng.integers(1, 4)))


def _outside_span(one: Steps) -> float:
    """The part of E1 - E0 outside the span of v and p_0, beside the whole; and the third singular value."""
    frame = np.linalg.qr(np.column_stack([one.case.start.v, one.case.start.p]))[0]
    outside = one.moved - one.moved @ frame @ frame.T
    sizes = np.linalg.svd(one.moved, compute_uv=False)
    third = sizes[2] if len(sizes) > 2 else 0.0
    return float(max(np.abs(outside).max(), third) / sizes[0])


_FIXED: Hypothesis[Steps] = Hypothesis("p stays where it is while E is trained", lambda one: not one.p_moves)


def _moving_query() -> Steps:
    rng = np.random.default_rng(3)
    return Steps(Training(random_labels(rng, 12, 4, 8), gaussian_start(rng, 8, 10), 5.0), 2, p_moves=True)


# --- enough dimensions -----------------------------------------------------------------------------------------------


def _high_dimension(rng: np.random.Generator) -> Training:
    documents = random_documents(rng, 12)
    d = documents.V + 2 + int(rng.integers(0, 6)) ** 2
    return Training(documents, gaussian_start(rng, documents.V, d), float(rng.uniform(0.1, 200)))


def _low_dimension(missing: int) -> Training:
    rng = np.random.default_rng(missing)
    documents = random_labels(rng, 12, 5, 9)
    return Training(documents, gaussian_start(rng, 9, 11 - missing), 20.0)


def _no_indicator(case: Training) -> float:
    """For every token: how badly E1 q = (1 at the token, else 0), q orthogonal to v and p_0, is solved at best."""
    pair = [case.start.v, case.start.p]
    return max(indicator_direction(case.step.E, s, pair)[1] for s in range(case.documents.V))


_ENOUGH: Hypothesis[Training] = Hypothesis("d >= V + 2", lambda case: case.start.E.shape[1] >= case.documents.V + 2)


# --- several classes -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ManyClasses:
    data: Classes
    E: Array
    p: Array
    v: Array  # (K, d)


def _many_classes(rng: np.random.Generator) -> ManyClasses:
    """Random documents of random lengths with K classes at p = 0, E v' = 0."""
    K, V, n = int(rng.integers(2, 6)), int(rng.integers(2, 9)), int(rng.integers(2, 20))
    d = K + int(rng.integers(1, 6))
    counts = planted_classes(rng, n, int(rng.integers(2, 6)), [1] * K, V).counts
    y = rng.integers(0, K, counts.shape[0])
    v, E = rng.normal(size=(K, d)), rng.normal(size=(counts.shape[1], d))
    E -= E @ np.linalg.pinv(v) @ v
    return ManyClasses(Classes(counts, y, K, y), E, np.zeros(d), v)


def _multiclass_step(one: ManyClasses) -> float:
    moved = -multiclass_gradient(one.data, one.E, one.p, one.v)[0]
    return float(np.abs(moved - class_frequencies(one.data) @ one.v).max() / np.abs(one.v).max())


_NO_CLASS_VALUES: Hypothesis[ManyClasses] = Hypothesis(
    "E_0 v_k = 0 for all k", lambda one: bool(np.abs(one.E @ one.v.T).max() < 1e-10)
)
_EVEN_ATTENTION: Hypothesis[ManyClasses] = Hypothesis("p_0 = 0", lambda one: not one.p.any())


def _classes_with_query() -> ManyClasses:
    one = _many_classes(np.random.default_rng(0))
    return replace(one, p=np.ones_like(one.p))


def _classes_with_values() -> ManyClasses:
    one = _many_classes(np.random.default_rng(0))
    return replace(one, E=one.E + one.v[0])


CLAIMS: tuple[Claim[Any], ...] = (
    Claim(
        id="te.rank-two",
        says="However many steps train E with p held fixed, every row of the change lies in the span of v and p_0, so "
        "its rank is at most two.",
        source=PAPER + ", proof of the divergence of p; for several steps keytokens",
        hypotheses=(_FIXED,),
        excess=_outside_span,
        tolerance=1e-12,
        draw=_steps,
        seeds=60,
        counters=(Counter("p is trained too", _FIXED.says, _moving_query),),
    ),
    Claim(
        id="te.dimension",
        says="With d >= V + 2 there is, for every token, a direction orthogonal to v and p_0 in which it alone has a "
        "logit, 1, after the step.",
        source=AFTER + ", proof of the divergence of p",
        hypotheses=(_ENOUGH,),
        excess=_no_indicator,
        tolerance=1e-9,  # the least squares of a random matrix, whose condition may be poor at d = V + 2
        draw=_high_dimension,
        seeds=60,
        counters=(
            Counter("d = V + 1", _ENOUGH.says, lambda: _low_dimension(1)),
            Counter("d < V", _ENOUGH.says, lambda: _low_dimension(4)),
        ),
        notes="The paper asks for a large d; V + 2 is ours.",
    ),
    Claim(
        id="te.multiclass-step",
        says="With K classes and cross-entropy, from p_0 = 0 and E_0 v_k = 0, one step moves E_s by eta sum_k alpha_sk "
        "v_k: alpha_sk is its frequency under class k less its frequency over K.",
        source="keytokens",
        hypotheses=(_EVEN_ATTENTION, _NO_CLASS_VALUES),
        excess=_multiclass_step,
        tolerance=1e-13,
        draw=_many_classes,
        seeds=40,
        counters=(
            Counter("a query that is not 0", _EVEN_ATTENTION.says, _classes_with_query),
            Counter("values at the start", _NO_CLASS_VALUES.says, _classes_with_values),
        ),
    ),
)
