"""`BagClassifier`: one softmax attention over bags of vectors, with proofs about their instances.

f(X) = <phi(X) v, softmax(phi(X) q)> + c     phi: a fixed map of one instance, learned from the training instances
       + <mean of X, A> + <maximum of X, M>  of each coordinate, where that is better on bags that were held out

a_t = phi(x_t)'q    b_t = phi(x_t)'v + c     each instance has one log weight and one value (a value a class, for more)

So what `keytokens.proof` proves of tokens holds for instances, each with count 1.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ..base.checks import LARGEST, Seen, check_choice, check_number, check_seed
from ..base.errors import refusal
from ..base.threads import one_blas_thread
from ..explain.bag import BagExplanation, InBag
from ..model.attention import holding_half
from ..model.blocks import Float
from ..model.features import FARTHEST, FEATURES, FeatureMap
from ..model.pooling import HEADS, Beside, Pooled, Shape, Weights, forward
from ..model.ragged import Bags
from ..training.bags import Training, first_weights, fit_beside, mixture
from ..training.lbfgs import LBFGSState
from ..training.loop import Outcome, Status
from ..training.weights import check_weights, class_weighted, sample_weights
from .attention import Scoring

Array = NDArray[np.float64]

POOLINGS = ("auto", "attention")
_MAP, _WEIGHTS = ("mean", "scale", "landmarks", "transform", "centre"), ("q", "V", "e", "U", "c")


def model_of(arrays: dict[str, Array], n_classes: int) -> tuple[FeatureMap, Weights, Beside]:
    """From what `to_arrays` gave; a ValueError for arrays that do not fit together."""
    shapes = _shapes(arrays, n_classes)
    if set(arrays) != set(shapes):
        raise ValueError("arrays are missing")
    for name, shape in shapes.items():
        if arrays[name].shape != shape or arrays[name].dtype != np.float64 or not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name} has the wrong shape or type, or is not finite")
    d, D = len(arrays["mean"]), len(arrays["q"])
    kind = "rbf" if len(arrays["landmarks"]) else "linear" if d == D else "quadratic"
    mean, scale, landmarks, transform, centre = (arrays[name] for name in _MAP)
    limit = float(arrays.get("limit", [FARTHEST])[0])
    phi = FeatureMap(kind, mean, scale, landmarks, transform, centre, float(arrays["width"][0]), limit)
    none = np.zeros((1, 0))
    return phi, Weights(*(arrays[name] for name in _WEIGHTS)), Beside(arrays.get("A", none), arrays.get("M", none))


def _shapes(arrays: dict[str, Array], n_classes: int) -> dict[str, tuple[int, ...]]:
    """What the arrays of a model must look like, going by the sizes of a few of them."""
    d, D, h, M = (len(arrays[name]) for name in ("mean", "q", "e", "landmarks"))
    classes = 1 if n_classes == 2 else n_classes
    m = classes if len(arrays["U"]) else 0
    if (not m and h != classes) or (not M and D not in (d, 2 * d)):
        raise ValueError("the arrays are of different models")
    shapes: dict[str, tuple[int, ...]] = {"mean": (d,), "scale": (d,), "landmarks": (M, d), "width": (1,)}
    shapes |= {"transform": (M, D) if M else (1, 1), "centre": (D,)}
    if {"A", "M", "limit"} & set(arrays):  # an older model has none of them
        columns = d if arrays["A"].size else 0
        shapes |= {"A": (classes, columns), "M": (classes, columns), "limit": (1,)}
    return shapes | {"q": (D,), "V": (h, D), "e": (h,), "U": (m, h), "c": (m,)}


def listed(X: Any) -> Any:
    """An iterator can be read only once: its bags as a list."""
    return list(X) if isinstance(X, Iterator) else X


def is_table(X: Any) -> bool:
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


def table_bags(X: Array, owner: str) -> Bags:
    """A table as bags of one instance each."""
    if not np.isfinite(X).all():
        i, j = np.argwhere(~np.isfinite(X))[0]
        raise refusal(owner, f"X[{i}, {j}]", "be finite", float(X[i, j]), "fill or drop NaN and inf first")
    largest = float(np.abs(X).max(initial=0.0))
    if largest > LARGEST:
        raise refusal(owner, "X", f"have entries up to {LARGEST:g}", largest, "scale the vectors")
    return Bags(X, np.arange(len(X) + 1))


def one_bag(bag: Any) -> Array:
    try:
        rows = np.asarray(bag, np.float64)
    except (TypeError, ValueError):
        raise refusal("explain", "bag", "be one bag of numbers, an array (T, d)", bag) from None
    if rows.ndim != 2:
        raise refusal("explain", "bag", "be one bag, an array (T, d)", Seen(f"{rows.ndim} dimensions"))
    return rows


def classes_of(owner: str, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The classes, two or more, and the index of each bag's class among them."""
    rule = "be labels of classes: strings, integers or booleans"
    if y.dtype.kind == "f" and np.isnan(y).any():
        raise refusal(owner, "y", rule, Seen("a missing label"), "leave out the bags without one")
    try:
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
    except (TypeError, ValueError) as error:
        raise refusal(owner, "y", rule, Seen(str(error).split(". ")[0].rstrip("."))) from None
    if len(classes) < 2:
        seen = Seen(f"one class only, {classes.tolist()[0]!r}")
        raise refusal(owner, "y", "have at least two classes", seen, "add bags of another class")
    return classes, codes


class BagClassifier(Scoring):
    """One softmax attention on bags of vectors, f(X) = <phi(X) v, softmax(phi(X) q)> + c.

    A bag is an array (T_i, d): the instances of one input, in any order. `X` is a list of bags or an array (n, T, d);
    a plain table (n, d) is n bags of one instance each.

    Parameters
    ----------
    features : "rbf", "quadratic" or "linear"
        phi, a map of single instances: similarities exp(-width |z - l|^2 / d) to landmarks l, z and z^2, or z itself.
    width : "auto" or float
        Of "rbf": large for similarities that fade fast. "auto": by how far a landmark is from its neighbours in other
        bags, d over the median of the squared distances, at most 3.
    pooling : "auto" or "attention"
        "auto": mean and maximum of each coordinate stand beside the attention, if five-fold cross-validation inside
        the training bags finds both together better. "attention": the attention alone.
    n_landmarks : int
        Of "rbf": so many training instances, drawn at random if there are more.
    scale : bool
        Bring every feature to mean 0 and variance 1 over the training instances first; what is farther than 3 standard
        deviations from the mean counts as 3.
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
    random_state : draws landmarks and starts.
    verbose : 0 or 1: a progress bar.

    Attributes
    ----------
    classes_, n_features_in_, feature_map_ (phi), query_ (D,), values_ (h, D), intercept_ (h,), with h = 1 for two
    classes and K for more; head "tanh": h = `hidden`, and head_values_ (1 or K, h), head_intercept_ on top;
    beside_ (weights A and M of mean and maximum; false if attention is alone), n_iter_, status_ (a sentence),
    history_ (the objective of the attention after each step).

    Examples
    --------
    >>> bags = [[[0.0, 1.0], [3.0, 0.0]], [[0.1, 0.9]], [[2.9, 0.2], [0.0, 1.1], [0.2, 1.0]], [[0.0, 0.8], [0.1, 1.0]]]
    >>> clf = BagClassifier().fit(bags, ["yes", "no", "yes", "no"])
    >>> clf.predict([[[0.1, 1.0], [3.1, 0.1]]]).tolist()
    ['yes']
    >>> clf.explain([[0.1, 1.0], [3.1, 0.1]]).sufficient.indices
    (1,)
    """

    feature_map_: FeatureMap
    beside_: Beside
    query_: Array
    values_: Array
    intercept_: Array
    head_values_: Array
    head_intercept_: Array

    def __init__(
        self,
        *,
        features: str = "rbf",
        width: Any = "auto",
        pooling: str = "auto",
        n_landmarks: int = 300,
        scale: bool = True,
        value_penalty: float = 0.01,
        attention_penalty: float = 0.1,
        head: str = "linear",
        hidden: int = 8,
        n_starts: int = 1,
        max_iter: int = 200,
        tol: float = 1e-4,
        class_weight: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.features = features
        self.width = width
        self.pooling = pooling
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
        check_choice(owner, "pooling", self.pooling, POOLINGS)
        chosen = isinstance(self.width, str)
        if chosen and self.width != "auto":
            raise refusal(owner, "width", 'be "auto" or a number above 0', self.width)
        for name in ("value_penalty", "attention_penalty", "tol", *(() if chosen else ("width",))):
            check_number(owner, name, getattr(self, name), 0, above=True)
        for name in ("n_landmarks", "hidden", "n_starts", "max_iter"):
            check_number(owner, name, getattr(self, name), 1, whole=True)
        if not isinstance(self.scale, (bool, np.bool_)):
            raise refusal(owner, "scale", "be True or False", self.scale)
        if self.class_weight is not None and not isinstance(self.class_weight, dict):
            check_choice(owner, "class_weight", self.class_weight, ("balanced",))
        check_seed(owner, "random_state", self.random_state)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BagClassifier:
        """Fit to bags and one label a bag, two classes or more."""
        owner = "BagClassifier.fit"
        self.check_options()
        X = listed(X)
        bags, y = self._training_bags(X, y, owner)
        classes, codes = classes_of(owner, y)
        weight = sample_weights(owner, sample_weight, len(bags))
        total = check_weights(owner, class_weighted(self.class_weight, y, weight), weight.dtype)
        seed = check_random_state(self.random_state)
        with one_blas_thread():
            phi, w, best, history = self._attend(bags, codes, weight, total, len(classes), seed)
            if best.status is Status.NOT_FINITE:
                rule, advice = "give a finite objective", "make them smaller"
                raise refusal(owner, "penalties and weights", rule, best.state.value, advice)
            w, beside = self._mixed(bags, codes, weight, total, len(classes), seed, phi, w)
        if not is_table(X):
            self.__dict__.pop("feature_names_in_", None)
        facts = {"n_iter_": best.steps, "status_": best.status.value, "history_": np.array(history)}
        self._replace(classes, phi, w, beside, **facts)
        return self

    def _attend(
        self, bags: Bags, codes: NDArray[np.intp], weight: Array, total: Array, n_classes: int, seed: Any
    ) -> tuple[FeatureMap, Weights, Outcome[LBFGSState], list[float]]:
        """The attention alone."""
        width = None if isinstance(self.width, str) else self.width
        each = bags.spread(weight)
        phi, rows = FeatureMap.learn(bags, each, self.features, self.scale, self.n_landmarks, width, seed)
        shape = Shape.of(rows.shape[1], n_classes, self.head, self.hidden)
        penalties = self.value_penalty, self.attention_penalty
        training = Training(shape, *penalties, self.max_iter, self.tol, self.verbose)
        starts = first_weights(shape, codes, weight, self.n_starts, seed)
        best, history = training.best(bags.with_rows(rows), codes, total, n_classes, starts)
        return phi, Weights.unpack(best.state.theta, *shape), best, history

    def _mixed(
        self,
        bags: Bags,
        codes: NDArray[np.intp],
        weight: Array,
        total: Array,
        n_classes: int,
        seed: Any,
        phi: FeatureMap,
        w: Weights,
    ) -> tuple[Weights, Beside]:
        """The attention with its share, and what stands beside it with its own."""

        def scaled(some: Bags) -> Bags:
            return some.with_rows(phi.scaled(some.rows))

        def fit(seen: NDArray[np.bool_]) -> tuple[Any, Any]:
            own, here = np.flatnonzero(seen), (codes[seen], weight[seen], total[seen])
            inner, attention, _, _ = quiet._attend(bags.some(own), *here, n_classes, seed)
            beside, added = fit_beside(scaled(bags.some(own)), here[0], here[2], n_classes)
            return (
                lambda some: forward(some.with_rows(inner(some.rows)), attention).scores,
                lambda some: beside.scores(scaled(some)) + added[:, None],
            )

        quiet = clone(self).set_params(verbose=0)
        share, other = (1.0, 0.0) if self.pooling == "attention" else mixture(fit, bags, codes, total, n_classes)
        if not other:
            return w.scaled(share, np.zeros(1)), Beside(*np.zeros((2, 1 if n_classes == 2 else n_classes, 0)))
        beside, added = fit_beside(scaled(bags), codes, total, n_classes)
        return w.scaled(share, other * added), Beside(other * beside.A, other * beside.M)

    def _training_bags(self, X: Any, y: Any, owner: str) -> tuple[Bags, NDArray[Any]]:
        if is_table(X):
            X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=False)
            return table_bags(X, owner), y
        bags = Bags.of(X, owner, "X", "instance")
        y = np.asarray(y)
        if y.shape != (len(bags),):
            seen = Seen(f"shape {y.shape}")
            raise refusal(owner, "y", f"have one label for each of the {len(bags)} bags", seen)
        return bags, y

    def _present(self) -> Weights:
        return Weights(self.query_, self.values_, self.intercept_, self.head_values_, self.head_intercept_)

    def _replace(self, classes: NDArray[Any], phi: FeatureMap, w: Weights, beside: Beside, **more: Any) -> None:
        """The model changes in one instant."""
        self.__dict__.update(
            classes_=classes,
            n_features_in_=len(phi.mean),
            feature_map_=phi,
            beside_=beside,
            query_=w.q,
            values_=w.V,
            intercept_=w.e,
            head_values_=w.U,
            head_intercept_=w.c,
            **more,
        )

    def _bags(self, X: Any, owner: str) -> Bags:
        check_is_fitted(self)
        X = listed(X)
        if is_table(X):
            X = validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite=False)
            return table_bags(X, owner)
        bags = Bags.of(X, owner, "X", "instance")
        if bags.dim != self.n_features_in_:
            rule = f"have {self.n_features_in_} features an instance, as in training"
            raise refusal(owner, "X", rule, Seen(f"{bags.dim} features"))
        return bags

    def _forward(self, X: Any, owner: str) -> tuple[Bags, Pooled]:
        bags = self._bags(X, owner)
        with one_blas_thread():  # the same bits whoever else uses BLAS at this moment
            return bags, forward(bags.with_rows(self.feature_map_(bags.rows)), self._present())

    def _scaled(self, bags: Bags) -> Bags:
        return bags.with_rows(self.feature_map_.scaled(bags.rows))

    def _scores(self, X: Any) -> Float:
        bags, done = self._forward(X, "predict")
        if not self.beside_:
            return done.scores
        with one_blas_thread():
            return done.scores + self.beside_.scores(self._scaled(bags))

    def attention(self, X: Any) -> list[Array]:
        """For each bag the attention on its instances, which adds up to 1."""
        bags, done = self._forward(X, "attention")
        return np.split(done.attention, bags.starts[1:-1])

    def selected(self, X: Any) -> list[NDArray[np.intp]]:
        """For each bag the instances that attention selects: the fewest that hold half of it, and ties with the last.

        A smaller `attention_penalty` selects fewer.
        """
        bags, done = self._forward(X, "selected")
        return [np.flatnonzero(holding_half(each)) for each in np.split(done.attention, bags.starts[1:-1])]

    def explain(self, bag: Any) -> BagExplanation:
        """Why this bag, an array (T, d), gets its label, with what is proved of it."""
        bags, done = self._forward([one_bag(bag)], "explain")
        w, values, beside = self._present(), done.values + self.intercept_, None
        scores = done.scores[:, 0]
        if self.beside_:
            beside = InBag(self.beside_, self._scaled(bags).rows)
            scores = scores + beside.parts.sum(axis=0)
        if len(self.classes_) == 2:
            scores, values = np.append(0.0, scores), np.column_stack([np.zeros(len(values)), values])
        return BagExplanation(done.logits, values if w.linear else None, scores, self.classes_.tolist(), beside=beside)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a directory, whole or not at all."""
        from .saving import save

        check_is_fitted(self)
        save(self, path)

    def to_arrays(self) -> dict[str, Array]:
        """What `save` keeps beside the options."""
        phi, w = self.feature_map_, self._present()
        arrays = {name: getattr(phi, name) for name in _MAP} | {name: getattr(w, name) for name in _WEIGHTS}
        arrays |= {"A": self.beside_.A, "M": self.beside_.M}
        return arrays | {name: np.array([getattr(phi, name)], np.float64) for name in ("width", "limit")}

    def from_arrays(self, arrays: dict[str, Array], classes: NDArray[Any]) -> None:
        """Take over what `to_arrays` gave; refuse what does not fit together."""
        self.check_options()
        self._replace(classes, *model_of(arrays, len(classes)))
