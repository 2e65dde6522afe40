"""Documents without labels, and a teacher that says what they are: the model itself, or given probabilities.

    q_jk            probability of class k for document j
    presence_sk     = sum over labelled documents [s in x_i][y_i = k] + weight sum over the others [s in x_j] q_jk

What a teacher says enters the prior alone: the log-count ratios and the mean length. How frequent the classes are, the
labels say, and they are all that the loss sees. With `loss` the others add loss sum_jk Q_jk loss_k(x_j) to it, Q being
q^2, normalised, and the presence is of Q too. The form of the model stays, and with it every proof.

A model that teaches itself is asked in a few rounds. Where probabilities t are given, a model that they have taught is
asked once, and q is the product of both, normalised: what one of the two alone believes counts less.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.threads import Pool
from ..model.attention import Gradient, Parameters, attend, evaluate
from ..model.blocks import Block, Float
from ..model.losses import Labels, SoftCrossEntropy, probabilities
from ..model.prior import PriorOptions, SoftCounts, Statistics, prior_of, soft_counts

if TYPE_CHECKING:
    from .fit import TrainingSet

_LEAST = 1e-6  # of a probability that is multiplied: nobody is so sure


@dataclass(frozen=True, eq=False)
class Teaching:
    """What is believed of a teacher."""

    documents: TrainingSet  # `y`: rows of probabilities, if they are `given`
    given: bool
    weight: float = 1.0  # of a document in the counts, where one with a label has 1
    loss: float = 0.0  # ... and in the loss
    model: Parameters | None = None  # who is asked

    @property
    def rounds(self) -> int:
        """How often a model is asked."""
        return 1 if self.given else 3

    def counts(self) -> SoftCounts:
        return self.documents.sum(_counts, self.given, self.model, self.loss > 0, self.weight)

    def evaluate(self, theta: Parameters) -> Gradient:
        """The loss of the documents and its slope, weighed."""
        found = self.documents.sum(_evaluate, self.given, self.model, theta)
        return Gradient(self.loss * found.loss, *(x * x.dtype.type(self.loss) for x in (found.a, found.B, found.c)))

    def agreement(self, data: TrainingSet, options: PriorOptions) -> tuple[float, float]:
        """How well the soft counts alone tell the labels: mean recall of the classes, and its standard error by chance.

        The labels have no part in these counts, if the teacher never saw them, and little if it did: it was asked about
        other texts. Whoever guesses has a mean recall of 1/K.
        """
        told = replace(self, weight=1.0).counts()
        none = np.zeros(len(told.presence), told.presence.dtype)
        prior = prior_of(Statistics(told.presence, none, told.mass, told.documents), options, data.sizes)
        zero = np.zeros(prior.mean.shape[1], none.dtype)
        theta = Parameters(prior.attention, np.ascontiguousarray(prior.mean.T), zero, zero, prior.log_sink)
        right, of = data.sum(_right, theta, data.n_classes)
        right, of = right[of > 0], of[of > 0]
        chance = 1 / data.n_classes
        return float((right / of).mean()), float(np.sqrt(chance * (1 - chance) * (1 / of).sum()) / len(of))


def _counts(
    block: Block,
    y: Any,
    _: Float,
    given: bool,
    model: Parameters | None,
    sharp: bool,
    weight: float,
    threads: Pool,
) -> SoftCounts:
    return soft_counts(block, _shares(block, y if given else None, model, sharp, threads), weight, threads)


def _evaluate(
    block: Block, y: Any, one: Float, given: bool, model: Parameters | None, theta: Parameters, threads: Pool
) -> Gradient:
    shares = _shares(block, y if given else None, model, True, threads)
    return evaluate(block, shares, one, SoftCrossEntropy(), theta, threads)


def _shares(block: Block, y: Float | None, model: Parameters | None, sharp: bool, threads: Pool) -> Float:
    """(n, K) q, or Q."""
    factors = [] if y is None else [y]
    if model is not None:
        factors.append(probabilities(_scores(block, model, threads)).T)
    if len(factors) == 1 and not sharp:
        return factors[0]
    q = np.prod([np.maximum(one, _LEAST) for one in factors], axis=0)
    if sharp:
        q = np.square(q)
    return np.asarray(q / q.sum(axis=1, keepdims=True))


def _scores(block: Block, theta: Parameters, threads: Pool) -> Float:
    found = attend(block, theta, threads)
    return np.where(found.total > 0, found.means.T + theta.c[:, None], theta.empty[:, None])


def _right(block: Block, y: Labels, _: Float, theta: Parameters, n_classes: int, threads: Pool) -> Float:
    """(2, K) how many documents of each class are told right, and how many there are."""
    F = _scores(block, theta, threads)
    found = (F[0] > 0).astype(np.intp) if len(F) == 1 else F.argmax(axis=0)
    return np.array([np.bincount(y[found == y], minlength=n_classes), np.bincount(y, minlength=n_classes)], np.float64)
