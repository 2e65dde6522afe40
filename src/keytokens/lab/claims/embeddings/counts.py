"""Documents as counts: the gradient in the embeddings, the bag of words, the average signed frequency."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ....model.attention import Parameters, evaluate
from ....model.blocks import Block
from ....model.losses import Logistic
from ...problems.embeddings import pull_back
from ..claim import Counter, Hypothesis, claim
from ..instances import Array, central_differences
from .data import Documents, random_labels
from .stages import AFTER, Start, Training, attention, embedding_gradient, random_documents


def _any_training(rng: np.random.Generator) -> Training:
    """Everything of order 1: far from the small start of the theory."""
    documents, d = random_documents(rng), int(rng.integers(1, 6))
    start = Start(rng.normal(size=(documents.V, d)), rng.normal(size=d), rng.normal(size=d))
    return Training(documents, start, float(rng.uniform(0.1, 10)), documents.balanced if rng.random() < 0.5 else None)


# --- the gradient ----------------------------------------------------------------------------------------------------


def _literal_logits(documents: Documents, start: Start, places: Array | None = None) -> Array:
    """f of each document, position by position: softmax(p'E_X')E_X v; perhaps with an embedding of each place added."""
    f = []
    for row in documents.tokens:
        X = start.E[row] if places is None else start.E[row] + places[: len(row)]
        weight = np.exp(X @ start.p - (X @ start.p).max())
        f.append(weight @ X @ start.v / weight.sum())
    return np.array(f)


def _literal_loss(case: Training, E: Array) -> float:
    weights = case.documents.even if case.weights is None else case.weights
    f = _literal_logits(case.documents, replace(case.start, E=E))
    return float(weights @ np.logaddexp(0, -case.documents.labels * f))


def _core_gradient(case: Training) -> Array:
    """By the chain rule through a = E p and b = E v, as the classifier trains."""
    E, p, v = case.start.E, case.start.p, case.start.v[None]
    weights = case.documents.even if case.weights is None else case.weights
    theta = Parameters(E @ p, v @ E.T, np.zeros(1), np.zeros(1))
    y = (case.documents.labels > 0).astype(np.intp)
    gradient = evaluate(Block.of(case.documents.counts), y, weights, Logistic(), theta)
    return np.asarray(pull_back(gradient, E, p, v)[0], np.float64)


# --- a bag of words --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Ordered:
    """A training set, another order of the tokens of each document, and an embedding of each place."""

    case: Training
    shuffled: Documents
    places: Array


def _ordered(rng: np.random.Generator, scale: float = 0.0) -> Ordered:
    case = _any_training(rng)
    documents = case.documents
    shuffled = replace(documents, tokens=tuple(rng.permutation(row) for row in documents.tokens))
    longest = int(documents.lengths.max())
    return Ordered(case, shuffled, scale * rng.normal(size=(longest, case.start.E.shape[1])))


# --- the average signed frequency ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Counted:
    """Documents, whether both labels weigh the same, and whether occurrences are weighed by 1/T_i for Delta."""

    documents: Documents
    balanced: bool = False
    by_length: bool = True


def _counted(rng: np.random.Generator) -> Counted:
    """Of equal lengths now and then; then Delta may count plain occurrences."""
    if rng.random() < 0.3:
        return Counted(random_labels(rng, int(rng.integers(2, 20)), int(rng.integers(1, 8)), 6), by_length=False)
    return Counted(random_documents(rng, 15), balanced=bool(rng.random() < 0.5))


def _class_share(documents: Documents, y: float, balanced: bool) -> Array:
    """(V,) the mean of c_s/T over the documents of a class, times 1/2 or the share of the class."""
    rows = [row for row, label in zip(documents.tokens, documents.labels, strict=True) if label == y]
    total = np.zeros(documents.V)
    for row in rows:
        for token in row:
            total[token] += 1 / len(row)
    return total / (2 * len(rows)) if balanced else total / len(documents)


def _equal_lengths_or_weighed(one: Counted) -> bool:
    return one.by_length or bool((one.documents.lengths == one.documents.lengths[0]).all())


_WEIGHED = Hypothesis[Counted](
    "all documents have one length, or Delta weighs an occurrence by 1/T_i", _equal_lengths_or_weighed
)


@claim(
    "te.gradient",
    says="Minus the gradient of the loss in E_s is the mean of y g Q_s (v + (b_s - f) p), g = sigma(-y f), for all "
    "lengths and weights of the documents.",
    source=AFTER + ", one-step lemma",
    tolerance=1.0,  # in units of 1e-8 against differences, 1e-12 against the classifier's own gradient
    draw=_any_training,
    seeds=40,
)
def _gradient(case: Training) -> float:
    """Against central differences (to 1e-8) and against the classifier's gradient (to rounding)."""
    formula = embedding_gradient(case.documents, case.start, case.weights)
    numeric = central_differences(lambda E: _literal_loss(case, E), case.start.E)
    core = np.abs(formula - _core_gradient(case)).max() / max(np.abs(formula).max(), 1e-12)
    return float(max(np.abs(formula - numeric).max() / 1e-8, core / 1e-12))


@claim(
    "te.bag-of-words",
    says="f depends on a document only through its counts: the softmax over positions equals the one over counts, "
    "in any order of the tokens.",
    source=AFTER + ", model",
    hypotheses=(Hypothesis("places have no embeddings of their own", lambda one: not one.places.any()),),
    tolerance=1e-13,
    draw=_ordered,
    seeds=60,
    counters=(
        Counter(
            "embeddings of places",
            "places have no embeddings of their own",
            lambda: _ordered(np.random.default_rng(0), 1.0),
        ),
    ),
)
def _bag_of_words(one: Ordered) -> float:
    start = one.case.start
    by_place = _literal_logits(one.case.documents, start, one.places)
    by_count = attention(one.case.documents, start.E @ start.p) @ (start.E @ start.v)
    reordered = _literal_logits(one.shuffled, start, one.places)
    worst = max(np.abs(by_place - by_count).max(), np.abs(by_place - reordered).max())
    return float(worst / (1 + np.abs(by_count).max()))


@claim(
    "te.signed-frequency",
    says="The average signed frequency of a token is its frequency times its posterior difference, with the same "
    "weights of lengths and classes in all three.",
    source=AFTER + ", average signed frequency",
    hypotheses=(_WEIGHED,),
    tolerance=1e-15 * 16,  # sums of up to 15 documents
    draw=_counted,
    seeds=80,
    counters=(
        Counter(
            "plain occurrences, different lengths",
            _WEIGHED.says,
            lambda: Counted(Documents.of([[0], [0, 1, 1]], [1, -1], 2), by_length=False),
        ),
    ),
)
def _signed_frequency(one: Counted) -> float:
    """alpha = freq Delta, all three position by position; and each against the count form."""
    documents = one.documents
    above, below = (_class_share(documents, y, one.balanced) for y in (1.0, -1.0))
    alpha, frequency = above - below, above + below
    weights = documents.balanced if one.balanced else documents.even
    delta = documents.posterior_difference(weights) if one.by_length else documents.plain_difference()
    counted = np.abs(alpha - documents.signed_frequency(weights)), np.abs(frequency - documents.frequency(weights))
    return float(max(np.abs(alpha - frequency * delta).max(), *(gap.max() for gap in counted)))
