"""`BagClassifier`: one softmax attention over bags of vectors, with proofs about their instances.

f(X) = <phi(X) v, softmax(phi(X) q)> + c     phi: a fixed map of one instance, learnt from the training instances
a_t = phi(x_t)'q    b_t = phi(x_t)'v + c     each instance has one log weight and one value (a value a class, for more)

So what is proved of tokens in `keytokens.certificate` holds for instances, each with count 1.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from . import certificate as proofs
from .certificate import Ballot
from .core.bags import LARGEST, Bags, softmax
from .core.counts import Float
from .core.losses import Loss, loss_for, probabilities
from .errors import refusal
from .explanation import DELETIONS, _half, _plain, _rounded_down, _times
from .fitting import class_weighted, progress
from .optim.lbfgs import LBFGS, LBFGSState
from .optim.loop import Outcome, run
from .validate import Seen, check_choice, check_number

__all__ = ["BagCertificate", "BagClassifier", "BagExplanation", "Instance", "InstanceSet"]

Array = NDArray[np.float64]

FEATURES = ("rbf", "quadratic", "linear")
HEADS = ("linear", "tanh")
FARTHEST = 1e70  # of a scaled entry: far beyond any training instance, and its fourth power is finite
JITTER = 1e-8  # added to the similarity of a landmark to itself: keeps the factor of nearly equal ones finite
UNIT = "instances"
_MAP, _WEIGHTS = ("mean", "scale", "landmarks", "transform", "centre"), ("q", "V", "e", "U", "c")
COVERS = "Deletions only: nothing is said of added or changed instances."
NOT_LINEAR = 'Nothing is proved of single instances: with head="tanh" the score is no weighted mean of their values.'


# ---- one instance: the map phi


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """phi: scale, then similarities to the landmarks ("rbf"), squares ("quadratic") or nothing more ("linear").

    Over the training instances phi has mean 0 and mean squared length 1, so that one penalty suits all data.
    """

    kind: str
    mean: Array  # (d,)
    scale: Array  # (d,)
    landmarks: Array  # (M, d) scaled; none unless "rbf"
    transform: Array  # (M, D) similarities to features; quadratic and linear: (1, 1), a factor
    centre: Array  # (D,)
    width: float

    @classmethod
    def learn(
        cls, rows: Array, weight: Array, kind: str, scaled: bool, n_landmarks: int, width: float, draw: Any
    ) -> tuple[FeatureMap, Array]:
        """The map and the features of the training instances; one of weight 2 is the same as two, of weight 0 none."""
        share = weight / weight.sum()
        d = rows.shape[1]
        mean, scale = _moments(rows, share) if scaled else (np.zeros(d), np.ones(d))
        none = np.zeros((0, d))
        if kind != "rbf":
            raw = cls(kind, mean, scale, none, np.ones((1, 1)), np.zeros(1), width)
        else:
            landmarks = _draw(_scale(rows[weight > 0], mean, scale), n_landmarks, draw)
            root = _inverse_root(_similarity(landmarks, landmarks, width))
            raw = cls(kind, mean, scale, landmarks, root, np.zeros(1), width)
        phi = raw(rows)
        centre = share @ phi
        phi -= centre
        size = float(np.sqrt(share @ np.einsum("ij,ij->i", phi, phi))) or 1.0
        phi /= size
        done = cls(kind, mean, scale, raw.landmarks, raw.transform / size, centre / size, width)
        return done, phi

    def __call__(self, rows: Array) -> Array:
        """(N, D) features of instances."""
        Z = _scale(rows, self.mean, self.scale)
        if self.kind == "rbf":
            return _similarity(Z, self.landmarks, self.width) @ self.transform - self.centre
        if self.kind == "quadratic":
            Z = np.concatenate([Z, Z * Z], axis=1)
        return Z * self.transform[0, 0] - self.centre


def _moments(rows: Array, share: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of each feature; 1 where it does not vary."""
    largest = np.maximum(np.abs(rows).max(axis=0), 1e-300)
    unit = rows / largest
    mean = share @ unit
    spread = np.sqrt(share @ (unit - mean) ** 2)
    spread = np.where(spread > 1e-13, spread * largest, 1.0)
    return mean * largest, np.where(spread > 0, spread, 1.0)


def _scale(rows: Array, mean: Array, scale: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.clip((rows - mean) / scale, -FARTHEST, FARTHEST)


def _draw(Z: Array, most: int, draw: Any) -> Array:
    """The landmarks: all different instances, or `most` of them drawn at random."""
    different = np.unique(Z, axis=0)
    if len(different) <= most:
        return different
    return different[np.sort(draw.choice(len(different), most, replace=False))]


def _similarity(Z: Array, landmarks: Array, width: float) -> Array:
    """exp(-width |z - l|^2 / d)."""
    K = Z @ (-2 * landmarks.T)  # in place from here on: this is the largest array of a fit
    K += (Z * Z).sum(axis=1)[:, None]
    K += (landmarks * landmarks).sum(axis=1)
    np.maximum(K, 0, out=K)
    K *= -width / Z.shape[1]
    return np.exp(K, out=K)


def _inverse_root(K: Array) -> Array:
    """T with T'(K + JITTER) T = I."""
    factor = linalg.cholesky(K + JITTER * np.eye(len(K)), lower=True)
    return np.ascontiguousarray(linalg.solve_triangular(factor, np.eye(len(K)), lower=True).T)


# ---- one bag: attention, pooling, head


@dataclass(frozen=True, eq=False)
class Weights:
    """q (D,), V (h, D) and e (h,): h pooled numbers; head "tanh": U (m, h) and c (m,) on top of them, else none."""

    q: Array
    V: Array
    e: Array
    U: Array
    c: Array

    @classmethod
    def unpack(cls, theta: Array, D: int, h: int, m: int) -> Weights:
        """The other way round from `pack`; m = 0 for the linear head."""
        q, V, e, U, c = np.split(theta, np.cumsum([D, h * D, h, m * h]))
        return cls(q, V.reshape(h, D), e, U.reshape(m, h), c)

    def pack(self) -> Array:
        return np.concatenate([part.ravel() for part in (self.q, self.V, self.e, self.U, self.c)])

    @property
    def linear(self) -> bool:
        return not len(self.U)


class Pooled(NamedTuple):
    """What a forward pass leaves behind."""

    attention: Array  # (N,)
    values: Array  # (N, h) of each instance, without intercept
    hidden: Array  # (n, h) pooled, with it
    scores: Array  # (m, n)


def forward(bags: Bags, w: Weights) -> Pooled:
    """The scores of bags of features.

    >>> w = Weights(np.zeros(1), np.ones((1, 1)), np.array([0.5]), np.zeros((0, 1)), np.zeros(0))
    >>> forward(Bags.of([[[1.0], [2.0]]]), w).scores.tolist()
    [[2.0]]
    """
    both = bags.rows @ np.vstack([w.q, w.V]).T
    s, B = softmax(bags, both[:, 0]), both[:, 1:]
    H = bags.sum(s[:, None] * B) + w.e
    return Pooled(s, B, H, H.T if w.linear else w.U @ np.tanh(H).T + w.c[:, None])


def backward(bags: Bags, w: Weights, done: Pooled, slope: Array) -> Weights:
    """The gradient of a sum of losses with derivatives `slope` (m, n) in the scores."""
    if w.linear:
        dH, dU, dc = slope.T, np.zeros_like(w.U), np.zeros_like(w.c)
    else:
        T = np.tanh(done.hidden)
        dH, dU, dc = (slope.T @ w.U) * (1 - T * T), slope @ T, slope.sum(axis=1)
    at = bags.spread(dH)
    away = done.values - bags.spread(done.hidden - w.e)
    pull = np.column_stack([(at * away).sum(axis=1), at]) * done.attention[:, None]
    both = pull.T @ bags.rows
    return Weights(both[0], both[1:], dH.sum(axis=0), dU, dc)


def objective_of(
    bags: Bags, y: NDArray[np.intp], weight: Array, loss: Loss, shape: tuple[int, int, int], penalties: Weights
) -> Callable[[Array], tuple[float, Array]]:
    """theta -> value and gradient of: sum of the losses + half of penalty times square, over all parameters."""
    ridge = penalties.pack()

    def objective(theta: Array) -> tuple[float, Array]:
        w = Weights.unpack(theta, *shape)
        done = forward(bags, w)
        value = float(weight @ loss.value(done.scores, y)) + 0.5 * float(theta @ (ridge * theta))
        slope = weight * loss.slope(done.scores, y)
        return value, backward(bags, w, done, slope).pack() + ridge * theta

    return objective


# ---- the record of one explained bag


@dataclass(frozen=True)
class Instance:
    """One instance of a bag; value and contribution are None if the head is not linear."""

    index: int
    attention: float
    value: float | None  # what it says for f, intercept folded in
    contribution: float | None  # attention * value; they add up to the logit
    selected: bool  # among the fewest that hold half of the attention


@dataclass(frozen=True)
class InstanceSet(Sequence[int]):
    """The instances of a formal set, most decisive first, and what is proved of its size."""

    indices: tuple[int, ...]
    size: int
    lower: int  # no smaller set than this does the same
    status: str  # "minimum", "subset-minimal", "bounds" (between lower and size) or "none"
    tight: bool = False  # holds to rounding
    label_after: Any = None  # flips: what `predict` says of the rest
    unit: str = UNIT

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        return self.indices[index]

    def __len__(self) -> int:
        return len(self.indices)

    def to_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "indices": list(self.indices)}


@dataclass(frozen=True, eq=False)
class BagExplanation:
    """Why one bag got its label: exact contributions, formal sets, and the certificate."""

    log_weight: Array  # (T,)
    values: Array | None  # (T, K) class scores, intercept folded in; two classes: 0 and b + c. None: head not linear
    scores: Array  # (K,) f of the bag; two classes: 0 and f
    classes: Sequence[Any]

    @functools.cached_property
    def _probabilities(self) -> Float:
        two = len(self.classes) == 2
        return probabilities(self.scores[1:, None] if two else self.scores[:, None])[:, 0]

    @functools.cached_property
    def _label(self) -> int:
        return int(self._probabilities.argmax())

    @property
    def label(self) -> Any:
        return _plain(self.classes[self._label])

    @property
    def probability(self) -> float:
        """Of the label."""
        return float(self._probabilities[self._label])

    @property
    def probabilities(self) -> dict[Any, float]:
        return {_plain(k): p for k, p in zip(self.classes, self._probabilities.tolist(), strict=True)}

    @property
    def _explained(self) -> int:
        """The class whose score the contributions add up to: the second of two, the predicted one of more."""
        return 1 if len(self.classes) == 2 else self._label

    @property
    def logit(self) -> float:
        """f: two classes, positive for the second one; more, the score of the label."""
        return float(self.scores[self._explained])

    @property
    def formal(self) -> bool:
        """Whether the sets are proved: only a linear head makes the score a weighted mean."""
        return self.values is not None

    @functools.cached_property
    def attention(self) -> Array:
        W = np.exp(self.log_weight - self.log_weight.max())
        return W / W.sum()

    @functools.cached_property
    def instances(self) -> tuple[Instance, ...]:
        """Every instance, in the order of the bag."""
        shares, chosen = self.attention.tolist(), _half(self.attention).tolist()
        if self.values is None:
            return tuple(Instance(t, s, None, None, k) for t, (s, k) in enumerate(zip(shares, chosen, strict=True)))
        said = self.values[:, self._explained]
        rows = zip(range(len(said)), shares, said.tolist(), (self.attention * said).tolist(), chosen, strict=True)
        return tuple(Instance(*row) for row in rows)

    @functools.cached_property
    def _ballot(self) -> Ballot | None:
        return None if self.values is None else Ballot.of(self.log_weight, self.values, self._label)

    @functools.cached_property
    def _sets(self) -> tuple[InstanceSet, InstanceSet]:
        if self._ballot is None:
            nothing = InstanceSet((), 0, 0, "none")
            return nothing, nothing
        return self._named(proofs.sufficient(self._ballot)), self._named(proofs.flip(self._ballot))

    def _named(self, found: proofs.TokenSet) -> InstanceSet:
        after = None if found.label_after is None else _plain(self.classes[found.label_after])
        return InstanceSet(found.indices, found.size, found.lower, found.status, found.tight, after)

    @property
    def sufficient(self) -> InstanceSet:
        """The fewest instances that fix the label: whatever others are deleted, it stays."""
        return self._sets[0]

    @property
    def flip(self) -> InstanceSet:
        """The fewest instances whose deletion changes the label; empty, with status "none", if there are none."""
        return self._sets[1]

    @functools.cached_property
    def certificate(self) -> BagCertificate:
        """What is proved of this prediction."""
        return BagCertificate(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain data for JSON."""
        return {
            "schema": 1,
            "label": self.label,
            "probability": self.probability,
            "probabilities": [{"label": k, "probability": p} for k, p in self.probabilities.items()],
            "logit": self.logit,
            "formal": self.formal,
            "instances": [dict(instance.__dict__) for instance in self.instances],
            "sufficient": self.sufficient.to_dict(),
            "flip": self.flip.to_dict(),
            "certificate": self.certificate.to_dict(),
        }

    def __repr__(self) -> str:
        head = f"BagExplanation({self.label!r}, probability {self.probability:.3f}, logit {self.logit:+.3f})"
        return f"{head}\n  {self.certificate.sentence}"


@dataclass(frozen=True, eq=False)
class BagCertificate:
    """What is proved of one prediction, in numbers and in `sentence`; None where nothing is."""

    explanation: BagExplanation
    unit = UNIT
    covers = COVERS

    @property
    def _ballot(self) -> Ballot | None:
        return self.explanation._ballot

    @property
    def instances(self) -> int:
        return len(self.explanation.log_weight)

    @property
    def exact(self) -> bool:
        """Whether the ranges are exact (two classes) or bounds that contain the truth (more)."""
        return len(self.explanation.classes) == 2

    @functools.cached_property
    def keeping(self) -> tuple[float, float] | None:
        """Least and greatest probability of the label, whatever is deleted outside the sufficient set."""
        if self._ballot is None:
            return None
        return proofs.probability_range(proofs.range_keeping(self._ballot, self.explanation.sufficient.indices))

    @property
    def at_least(self) -> float | None:
        """The least of these probabilities."""
        return None if self.keeping is None else self.keeping[0]

    @functools.cached_property
    def deleting(self) -> dict[int, tuple[float, float]]:
        """The same when at most m instances are deleted, whichever they are."""
        if self._ballot is None:
            return {}
        ends = proofs.ranges_deleting(self._ballot, DELETIONS)
        return {m: proofs.probability_range(both) for m, both in zip(DELETIONS, ends, strict=True)}

    @functools.cached_property
    def attention_outside(self) -> float | None:
        """The attention outside the sufficient set."""
        if self._ballot is None:
            return None
        return float(proofs.drop(self._ballot, self.explanation.sufficient.indices).delta)

    @functools.cached_property
    def probability_after_flip(self) -> float | None:
        """Of the label, once the flip set is deleted."""
        gone = self.explanation.flip
        if self._ballot is None or gone.status == "none":
            return None
        return proofs.probability_without(self._ballot, gone.indices)

    @property
    def tight(self) -> bool:
        """A comparison hangs on a relative difference below 1e-12."""
        return self.explanation.sufficient.tight or self.explanation.flip.tight

    @functools.cached_property
    def sentence(self) -> str:
        if self._ballot is None:
            return NOT_LINEAR
        parts = [_kept_words(self), _gone_words(self)]
        if self.tight:
            parts.append("To rounding: a comparison hangs on a relative difference below 1e-12.")
        return " ".join([*parts, self.covers])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "label": self.explanation.label,
            "logit": self.explanation.logit,
            "probability": self.explanation.probability,
            "instances": self.instances,
            "keeping": None if self.keeping is None else list(self.keeping),
            "deleting": {str(m): list(both) for m, both in self.deleting.items()},
            "exact": self.exact,
            "attention_outside": self.attention_outside,
            "probability_after_flip": self.probability_after_flip,
            "label_after_flip": self.explanation.flip.label_after,
            "tight": self.tight,
            "unit": self.unit,
            "covers": self.covers,
            "sentence": self.sentence,
        }


def _no_fewer(size: int) -> str:
    return "No single instance does." if size == 2 else f"No {size - 1} instances do."


def _kept_words(c: BagCertificate) -> str:
    kept, label = c.explanation.sufficient, f"{c.explanation.label!r}"
    stays = f"it stays {label} and its probability stays at least {_rounded_down(c.at_least)}"
    of_all = f"{kept.size} of {_times(c.instances, UNIT)}"
    if kept.status == "minimum":
        verb = "fixes" if kept.size == 1 else "fix"
        fewer = f" {_no_fewer(kept.size)}" if kept.size > 1 else ""
        return f"{of_all} {verb} the label: whatever other instances are deleted, {stays}.{fewer}"
    rivals = len(c.explanation.classes) - 1
    return (
        f"These {of_all} fix the label against all {rivals} rivals: whatever other instances are deleted, {stays}. "
        f"None of them can be left out (at least {kept.lower} are needed)."
    )


def _gone_words(c: BagCertificate) -> str:
    gone, label = c.explanation.flip, f"{c.explanation.label!r}"
    if gone.status == "none":
        return "No deletion that leaves an instance changes the label."
    these = "this instance" if gone.size == 1 else f"these {gone.size} instances"
    fewer = f" {_no_fewer(gone.size)}" if gone.size > 1 else ""
    then = f"the probability of {label} is then {c.probability_after_flip:.2f}"
    return f"Deleting {these} makes it {gone.label_after!r} ({then}).{fewer}"


# ---- the estimator


class BagClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """One softmax attention on bags of vectors, f(X) = <phi(X) v, softmax(phi(X) q)> + c.

    A bag is an array (T_i, d): the instances of one input, in any order. `X` is a list of bags or an array (n, T, d);
    a plain table (n, d) is n bags of one instance each.

    Parameters
    ----------
    features : "rbf", "quadratic" or "linear"
        phi, a map of single instances: similarities exp(-width |z - l|^2 / d) to landmarks l, z and z^2, or z itself.
    width : float
        Of "rbf": large for similarities that fade fast.
    n_landmarks : int
        Of "rbf": so many training instances, drawn at random if there are more.
    scale : bool
        Bring every feature to mean 0 and variance 1 over the training instances first.
    value_penalty, attention_penalty : float
        Precision of v and of q around 0, beside the sum of the losses: a large `attention_penalty` keeps attention
        uniform, a small one lets it select sharply.
    head : "linear" or "tanh"
        "tanh" puts `hidden` units on `hidden` pooled numbers. The score is then no weighted mean of values any more:
        `explain` still gives the attention but proves nothing.
    n_starts : int
        Keep the best of so many runs: the first begins at 0, the others at random q.
    max_iter, tol :
        Stop after so many steps, or when a step lowers the objective by less than this share of it.
    class_weight : None, "balanced" or dict
    warm_start : bool
        Begin the next `fit` at the present parameters, keeping phi, if the shapes agree.
    random_state : draws landmarks and starts.
    verbose : 0 or 1: a progress bar.

    Attributes
    ----------
    classes_, n_features_in_, feature_map_ (phi), query_ (D,), values_ (h, D), intercept_ (h,), with h = 1 for two
    classes and K for more; head "tanh": h = `hidden`, and head_values_ (1 or K, h), head_intercept_ on top;
    n_iter_, status_ (a sentence), history_ (the objective after each step).

    Examples
    --------
    >>> bags = [[[0.0, 1.0], [3.0, 0.0]], [[0.1, 0.9]], [[2.9, 0.2], [0.0, 1.1], [0.2, 1.0]], [[0.0, 0.8], [0.1, 1.0]]]
    >>> clf = BagClassifier().fit(bags, ["yes", "no", "yes", "no"])
    >>> clf.predict([[[0.1, 1.0], [3.1, 0.1]]]).tolist()
    ['yes']
    >>> clf.explain([[0.1, 1.0], [3.1, 0.1]]).sufficient.indices
    (1,)
    """

    classes_: NDArray[Any]
    feature_map_: FeatureMap
    query_: Array
    values_: Array
    intercept_: Array
    head_values_: Array
    head_intercept_: Array

    def __init__(
        self,
        *,
        features: str = "rbf",
        width: float = 3.0,
        n_landmarks: int = 300,
        scale: bool = True,
        value_penalty: float = 0.03,
        attention_penalty: float = 0.1,
        head: str = "linear",
        hidden: int = 8,
        n_starts: int = 1,
        max_iter: int = 200,
        tol: float = 1e-3,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.features = features
        self.width = width
        self.n_landmarks = n_landmarks
        self.scale = scale
        self.value_penalty = value_penalty
        self.attention_penalty = attention_penalty
        self.head = head
        self.hidden = hidden
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def check_options(self) -> None:
        """Refuse options that break a rule, as `fit` does before it begins."""
        owner = type(self).__name__
        check_choice(owner, "features", self.features, FEATURES)
        check_choice(owner, "head", self.head, HEADS)
        for name in ("width", "value_penalty", "attention_penalty", "tol"):
            check_number(owner, name, getattr(self, name), 0, above=True)
        for name in ("n_landmarks", "hidden", "n_starts", "max_iter"):
            check_number(owner, name, getattr(self, name), 1, whole=True)
        if not isinstance(self.scale, (bool, np.bool_)):
            raise refusal(owner, "scale", "be True or False", self.scale)
        if self.class_weight is not None and not isinstance(self.class_weight, dict):
            check_choice(owner, "class_weight", self.class_weight, ("balanced",))

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BagClassifier:
        """Fit to bags and one label a bag, two classes or more."""
        self.check_options()
        X = _listed(X)
        bags, y = self._training_bags(X, y)
        weight = _check_weight(sample_weight, len(bags))
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            seen = Seen(f"one class only, {_plain(classes[0])!r}")
            raise refusal("BagClassifier.fit", "y", "have at least two classes", seen, "add bags of another class")
        seed = check_random_state(self.random_state)
        warm = self._may_go_on(classes, bags.dim)
        with threadpool_limits(1, "blas"):  # the same bits whatever BLAS would like to use
            phi, rows = self._keep_map(bags) if warm else self._learn_map(bags, weight, seed)
            mapped = bags.with_rows(rows)
            starts = [self._present().pack()] if warm else self._starts(mapped, codes, weight, len(classes), seed)
            total: Array = np.asarray(class_weighted(self.class_weight, y, weight), np.float64)
            best, history = self._train(mapped, codes, total, len(classes), starts)
        w = Weights.unpack(best.state.theta, *self._shape(mapped.dim, len(classes)))
        if not _is_table(X):
            self.__dict__.pop("feature_names_in_", None)
        self._replace(classes, phi, w, n_iter_=best.steps, status_=best.status.value, history_=np.array(history))
        return self

    def _training_bags(self, X: Any, y: Any) -> tuple[Bags, NDArray[Any]]:
        if _is_table(X):
            X, y = validate_data(self, X, y, dtype=np.float64)
            bags = _single(X)
        else:
            bags = Bags.of(X, "BagClassifier.fit", "X")
            y = np.asarray(y)
            if y.shape != (len(bags),):
                seen = Seen(f"shape {y.shape}")
                raise refusal("BagClassifier.fit", "y", f"have one label for each of the {len(bags)} bags", seen)
        check_classification_targets(y)
        return bags, y

    def _keep_map(self, bags: Bags) -> tuple[FeatureMap, Array]:
        return self.feature_map_, self.feature_map_(bags.rows)

    def _learn_map(self, bags: Bags, weight: Array, seed: Any) -> tuple[FeatureMap, Array]:
        each = bags.spread(weight)
        return FeatureMap.learn(bags.rows, each, self.features, self.scale, self.n_landmarks, self.width, seed)

    def _shape(self, D: int, n_classes: int) -> tuple[int, int, int]:
        m = 1 if n_classes == 2 else n_classes
        return (D, m, 0) if self.head == "linear" else (D, self.hidden, m)

    def _starts(self, bags: Bags, codes: NDArray[np.intp], weight: Array, n_classes: int, seed: Any) -> list[Array]:
        """Where the runs begin: no attention and no values but the prior odds; then random attention."""
        D, h, m = self._shape(bags.dim, n_classes)
        total = np.log(np.maximum(np.bincount(codes, weight, n_classes), 1e-300))
        odds = total[1:] - total[0] if n_classes == 2 else total - total.mean()
        starts = []
        for number in range(self.n_starts):
            q = seed.standard_normal(D) if number else np.zeros(D)
            if m == 0:
                w = Weights(q, np.zeros((h, D)), odds, np.zeros((0, h)), np.zeros(0))
            else:
                U = seed.standard_normal((m, h)) / np.sqrt(h)
                w = Weights(q, seed.standard_normal((h, D)), np.zeros(h), U, odds)
            starts.append(w.pack())
        return starts

    def _penalties(self, D: int, h: int, m: int) -> Weights:
        lv, lq = self.value_penalty, self.attention_penalty
        return Weights(np.full(D, lq), np.full((h, D), lv), np.zeros(h), np.full((m, h), lv), np.zeros(m))

    def _train(
        self, bags: Bags, codes: NDArray[np.intp], weight: Array, n_classes: int, starts: list[Array]
    ) -> tuple[Outcome[LBFGSState], list[float]]:
        """The best of the runs, and how its objective fell."""
        shape = self._shape(bags.dim, n_classes)
        penalties = self._penalties(*shape)
        objective = objective_of(bags, codes, weight, loss_for(n_classes), shape, penalties)
        curvature = penalties.pack() + 0.25 * weight.sum() * _mean_squares(*shape)
        method = LBFGS(objective, 1 / curvature, memory=10, tolerance=self.tol)
        best: tuple[Outcome[LBFGSState], list[float]] | None = None
        with progress(self.verbose) as tick:
            for start in starts:
                history: list[float] = []

                def watch(state: LBFGSState, history: list[float] = history) -> None:
                    history.append(state.value)
                    tick(state.value)

                outcome = run(method, start, self.max_iter, watch)
                if best is None or outcome.state.value < best[0].state.value:
                    best = outcome, history
        assert best is not None
        return best

    def _may_go_on(self, classes: NDArray[Any], dim: int) -> bool:
        """Whether a warm start is wanted and the present parameters fit."""
        if not self.warm_start or not hasattr(self, "query_") or not np.array_equal(self.classes_, classes):
            return False
        phi, (_, h, m) = self.feature_map_, self._shape(1, len(classes))
        same = phi.kind == self.features and len(phi.mean) == dim
        return same and len(self.values_) == h and len(self.head_values_) == m

    def _present(self) -> Weights:
        return Weights(self.query_, self.values_, self.intercept_, self.head_values_, self.head_intercept_)

    def _replace(self, classes: NDArray[Any], phi: FeatureMap, w: Weights, **more: Any) -> None:
        """The model changes in one instant."""
        self.__dict__.update(
            classes_=classes,
            n_features_in_=len(phi.mean),
            feature_map_=phi,
            query_=w.q,
            values_=w.V,
            intercept_=w.e,
            head_values_=w.U,
            head_intercept_=w.c,
            **more,
        )

    def _bags(self, X: Any, owner: str) -> Bags:
        check_is_fitted(self)
        X = _listed(X)
        if _is_table(X):
            return _single(validate_data(self, X, dtype=np.float64, reset=False))
        bags = Bags.of(X, owner, "X")
        if bags.dim != self.n_features_in_:
            rule = f"have {self.n_features_in_} features an instance, as in training"
            raise refusal(owner, "X", rule, Seen(f"{bags.dim} features"))
        return bags

    def _forward(self, X: Any, owner: str) -> tuple[Bags, Pooled]:
        bags = self._bags(X, owner)
        return bags, forward(bags.with_rows(self.feature_map_(bags.rows)), self._present())

    def decision_function(self, X: Any) -> Array:
        """f: (n,) for two classes, positive for `classes_[1]`; (n, K) for more."""
        F = self._forward(X, "decision_function")[1].scores
        return F[0] if len(F) == 1 else F.T

    def predict_proba(self, X: Any) -> Float:
        """The probability of each class, (n, K)."""
        return probabilities(self._forward(X, "predict")[1].scores).T

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest probability; the first of them if several are equal."""
        P = self.predict_proba(X)
        return self.classes_[P.argmax(axis=1)]

    def attention(self, X: Any) -> list[Array]:
        """For each bag the attention on its instances, which adds up to 1."""
        bags, done = self._forward(X, "attention")
        return np.split(done.attention, bags.starts[1:-1])

    def explain(self, bag: Any) -> BagExplanation:
        """Why this bag, an array (T, d), gets its label, with what is proved of it."""
        bags = self._bags([_one_bag(bag)], "explain")
        phi, w = self.feature_map_(bags.rows), self._present()
        done = forward(bags.with_rows(phi), w)
        both = len(self.classes_) == 2
        scores = np.append(0.0, done.scores[:, 0]) if both else done.scores[:, 0]
        values = done.values + w.e
        if both:
            values = np.column_stack([np.zeros(len(values)), values])
        return BagExplanation(phi @ w.q, values if w.linear else None, scores, self.classes_.tolist())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a directory, whole or not at all."""
        from .persist import save

        check_is_fitted(self)
        save(self, path)

    def to_arrays(self) -> dict[str, Array]:
        """What `save` keeps beside the options."""
        phi, w = self.feature_map_, self._present()
        arrays = {name: getattr(phi, name) for name in _MAP} | {name: getattr(w, name) for name in _WEIGHTS}
        return arrays | {"width": np.array([phi.width], np.float64)}

    def from_arrays(self, arrays: dict[str, Array], classes: NDArray[Any]) -> None:
        """Take over what `to_arrays` gave; refuse what does not fit together."""
        self.check_options()
        shapes = _shapes(arrays, len(classes))
        if set(arrays) != set(shapes):
            raise ValueError("arrays are missing")
        for name, shape in shapes.items():
            if arrays[name].shape != shape or arrays[name].dtype != np.float64 or not np.isfinite(arrays[name]).all():
                raise ValueError(f"{name} has the wrong shape or type, or is not finite")
        d, D = len(arrays["mean"]), len(arrays["q"])
        kind = "rbf" if len(arrays["landmarks"]) else "linear" if d == D else "quadratic"
        mean, scale, landmarks, transform, centre = (arrays[name] for name in _MAP)
        phi = FeatureMap(kind, mean, scale, landmarks, transform, centre, float(arrays["width"][0]))
        self._replace(classes, phi, Weights(*(arrays[name] for name in _WEIGHTS)))


def _shapes(arrays: dict[str, Array], n_classes: int) -> dict[str, tuple[int, ...]]:
    """What the arrays of a model must look like, going by the sizes of a few of them."""
    d, D, h, M = (len(arrays[name]) for name in ("mean", "q", "e", "landmarks"))
    classes = 1 if n_classes == 2 else n_classes
    m = classes if len(arrays["U"]) else 0
    if (not m and h != classes) or (not M and D not in (d, 2 * d)):
        raise ValueError("the arrays are of different models")
    shapes: dict[str, tuple[int, ...]] = {"mean": (d,), "scale": (d,), "landmarks": (M, d), "width": (1,)}
    shapes |= {"transform": (M, D) if M else (1, 1), "centre": (D,)}
    return shapes | {"q": (D,), "V": (h, D), "e": (h,), "U": (m, h), "c": (m,)}


def _listed(X: Any) -> Any:
    """An iterator can be read only once: its bags as a list."""
    return list(X) if isinstance(X, Iterator) else X


def _is_table(X: Any) -> bool:
    """A table (n, d), or anything that scikit-learn should refuse in its own words; not a sequence of bags."""
    if isinstance(X, Bags):
        return False
    ndim = getattr(X, "ndim", None)
    if sparse.issparse(X) or (ndim is None and hasattr(X, "__array__")):
        return True
    if ndim not in (None, 1):
        return int(ndim) != 3
    try:
        first = next(iter(X))
        return not isinstance(first, str) and np.ndim(first) in (0, 1)
    except (TypeError, ValueError, StopIteration):
        return ndim is not None


def _one_bag(bag: Any) -> Array:
    try:
        rows = np.asarray(bag, np.float64)
    except (TypeError, ValueError):
        raise refusal("explain", "bag", "be one bag of numbers, an array (T, d)", bag) from None
    if rows.ndim != 2:
        raise refusal("explain", "bag", "be one bag, an array (T, d)", Seen(f"{rows.ndim} dimensions"))
    return rows


def _single(X: Array) -> Bags:
    """A table as bags of one instance each."""
    largest = float(np.abs(X).max(initial=0.0))
    if largest > LARGEST:
        raise refusal("BagClassifier", "X", f"have entries up to {LARGEST:g}", largest, "scale the vectors")
    return Bags(X, np.arange(len(X) + 1))


def _check_weight(given: Any, n: int) -> Array:
    if given is None:
        return np.ones(n)
    try:
        weight = np.asarray(given, np.float64)
        weight = np.full(n, weight) if weight.ndim == 0 else weight
    except (TypeError, ValueError):
        weight = np.zeros(0)
    if weight.shape != (n,) or not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        rule = f"be {n} finite numbers, none negative and not all zero"
        raise refusal("BagClassifier.fit", "sample_weight", rule, given)
    return weight


def _mean_squares(D: int, h: int, m: int) -> Array:
    """What each parameter is multiplied by, squared, in the mean: phi has mean squared length 1."""
    each = np.full(D, 1 / D)
    return Weights(each, np.tile(each, (h, 1)), np.ones(h), np.ones((m, h)), np.ones(m)).pack()
