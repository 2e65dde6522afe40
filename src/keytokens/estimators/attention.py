"""`AttentionClassifier`, the estimator on a matrix of counts, and `Attention`, what it shares with the one on texts.

`Attention` checks the options, trains on blocks of counts, and turns scores into probabilities and labels. Who inherits
from it makes the blocks in `fit`, and in `_scores` the scores of what is to be predicted.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ..base.checks import Seen, check_choice, check_number, check_seed
from ..base.errors import refusal
from ..base.progress import progress
from ..base.threads import cores
from ..model.attention import Parameters, scores
from ..model.blocks import Block, Float, blocks_of
from ..model.embeddings import Embeddings, embed
from ..model.losses import log_probabilities, probabilities
from ..model.prior import PriorOptions
from ..model.weighting import WEIGHTINGS, weigh
from ..training.fit import TrainingSet, fit_scalars
from ..training.lbfgs import LBFGSState
from ..training.teaching import Teaching
from ..training.weights import check_memory, check_weights, class_weighted
from .prior import Prior

if TYPE_CHECKING:
    from .streaming import Workplace


class Exact:
    """The parameters in double precision, made when they are first asked for: what every prediction and proof uses.

    With more than two classes, what is added to all scores of a token changes nothing: they are made to sum to 0.
    """

    def __init__(self, trained: Parameters, on_grid: bool = False) -> None:
        self.trained = trained
        self.on_grid = on_grid  # made so by `compression`

    @functools.cached_property
    def theta(self) -> Parameters:
        own = self.trained
        a, c, empty = (np.asarray(x, np.float64) for x in (own.a, own.c, own.empty))
        if len(c) == 1:
            return Parameters(a, np.asarray(own.B, np.float64), c, empty, own.log_sink)
        B = own.B - own.B.mean(axis=0, dtype=np.float64)
        return Parameters(a, B, c - c.mean(), empty, own.log_sink)


class Scoring(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What a classifier answers, from the scores (1 or K, n) that it gives in `_scores`."""

    classes_: NDArray[Any]
    label_noise_: float = 0.0  # the share of labels that are taken for drawn by lot

    def _scores(self, X: Any) -> Float:
        raise NotImplementedError

    def decision_function(self, X: Any) -> Float:
        """f: (n,) for two classes, positive for `classes_[1]`; (n, K) for more."""
        F = self._scores(X)
        return F[0] if len(F) == 1 else F.T

    def predict_proba(self, X: Any) -> Float:
        """The probability of each class, (n, K)."""
        return probabilities(self._scores(X), self.label_noise_).T

    def predict_log_proba(self, X: Any) -> Float:
        """The logarithm of each probability, (n, K): finite also where the probability itself rounds to 0."""
        return log_probabilities(self._scores(X), self.label_noise_).T

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest probability; the first of them if several are equal."""
        P = self.predict_proba(X)
        return self.classes_[P.argmax(axis=1)]


class Attention(Scoring):
    """The options of a model, its training, and its predictions once `_scores` is written."""

    attention_: Float
    values_: Float
    intercept_: Float
    empty_: Float
    log_sink_: float
    _exact: Exact

    def __init__(
        self,
        *,
        counts: str = "raw",
        brevity: float = 0.3,
        class_weight: Any = None,
        random_state: Any = None,
        threads: int | None = None,
        max_iter: int = 100,
        verbose: int = 0,
        prior: Prior | None = None,
    ) -> None:
        self.counts = counts
        self.brevity = brevity
        self.class_weight = class_weight
        self.random_state = random_state
        self.threads = threads
        self.max_iter = max_iter
        self.verbose = verbose
        self.prior = prior

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The options by name; `deep`: also those of the prior, as `prior__ratio` and so on."""
        found: dict[str, Any] = super().get_params(deep=deep)
        if deep and self.prior is None:
            found |= {f"prior__{name}": value for name, value in Prior().get_params().items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Change options by name; the first `prior__...` makes a prior where there was none."""
        if params.get("prior", self.prior) is None and any(name.startswith("prior__") for name in params):
            params["prior"] = Prior()
        return cast("Self", super().set_params(**params))

    def flat_params(self) -> dict[str, Any]:
        """The options without `prior` itself, only its own as `prior__ratio` and so on: what `set_params` takes."""
        return {name: value for name, value in self.get_params().items() if name != "prior"}

    def check_options(self) -> None:
        """Refuse options that break a rule, as `fit` does before it begins."""
        owner = type(self).__name__
        check_choice(owner, "counts", self.counts, WEIGHTINGS)
        if self.prior is not None and not isinstance(self.prior, Prior):
            raise refusal(owner, "prior", "be a Prior or None", self.prior, "for example prior=Prior(sink=0)")
        (self.prior or Prior()).check_options()
        check_number(owner, "brevity", self.brevity, 0)
        if self.brevity > 1:
            raise refusal(owner, "brevity", "be a number from 0 to 1", self.brevity)
        check_number(owner, "max_iter", self.max_iter, 1, whole=True)
        if self.class_weight is not None and not isinstance(self.class_weight, dict):
            check_choice(owner, "class_weight", self.class_weight, ("balanced",))
        check_number(owner, "threads", self.threads, 1, whole=True, none=True)
        check_seed(owner, "random_state", self.random_state)

    @property
    def _threads(self) -> int:
        return cores() if self.threads is None else int(self.threads)

    def _training_set(
        self,
        blocks: list[Block],
        n_classes: int,
        y: NDArray[np.intp],
        weight: Float,
        sizes: NDArray[np.integer[Any]] | None = None,
    ) -> TrainingSet:
        """Counts that are weighed already, and what is known of their documents, checked."""
        owner = f"{type(self).__name__}.fit"
        n_tokens, dtype = blocks[0].tokens.shape[0], blocks[0].tokens.dtype
        check_memory(owner, n_classes, n_tokens, len(y), dtype.itemsize)
        weight = check_weights(owner, weight, dtype)
        return TrainingSet.of(blocks, y, weight, n_classes, self._threads, sizes)

    @property
    def _rules(self) -> tuple[PriorOptions, int, float]:
        """The prior, the most steps, and the tolerance, as training takes them."""
        prior = self.prior or Prior()
        options = PriorOptions(prior.ratio, prior.spread, prior.sink, prior.attention_penalty, self.brevity)
        return options, self.max_iter, prior.tol

    def _learn(
        self,
        data: TrainingSet,
        classes: NDArray[Any],
        place: Workplace | None = None,
        teaching: Teaching | None = None,
        **more: Any,
    ) -> None:
        """Fit to documents wherever they lie; the model changes in one instant, when all has gone well.

        `place` keeps states of the training; `teaching` is that of the last round.
        """
        history = [] if place is None else place.history()
        resume = place.state if place is not None and history else None
        with progress(self.verbose) as tick:

            def watch(state: LBFGSState) -> None:
                if place is not None:
                    place.tick(state, history)
                history.append(state.value)
                tick(state.value)

            done = fit_scalars(data, *self._rules, watch, resume, len(history), teaching)
        theta = done.theta
        self.__dict__.update(
            classes_=classes,
            attention_=theta.a,
            values_=theta.B,
            intercept_=theta.c,
            empty_=theta.empty,
            log_sink_=theta.log_sink,
            mean_attention_=data.mean_attention(theta),
            class_counts_=np.ascontiguousarray(done.presence.T),
            n_iter_=done.steps,
            status_=done.status.value,
            history_=np.array(history),
            _exact=Exact(theta),
            **more,
        )

    @property
    def _theta(self) -> Parameters:
        return self._exact.theta

    def _present(self) -> Parameters:
        """The parameters as they were trained."""
        return Parameters(self.attention_, self.values_, self.intercept_, self.empty_, self.log_sink_)

    def to_embeddings(self, dim: int | None = None) -> Embeddings:
        """E, p, v in dimension `dim` (None: the least that can hold the model) with the same f (see `Embeddings`)."""
        check_is_fitted(self)
        least = len(self.values_) + 1
        check_number("to_embeddings", "dim", dim, least, whole=True, none=True)
        return embed(self._theta, least if dim is None else dim)


LARGEST = 1e12  # of an entry of a matrix, so that sums of squares stay finite in single precision


class AttentionClassifier(Attention):
    """One layer of softmax attention on a matrix of counts, f = C(w b) / (C w + w0) + c with w = exp(a).

    Amounts that are no counts will do as well. A negative amount is that much of an opposite token, which gets an
    attention and a value of its own: columns V to 2V of the parameters, made only if such entries occur in training.

    Parameters
    ----------
    counts : "raw", "log" or "binary"
        The weight of a token that occurs c times: c, 1 + log c, or 1. Of an amount below 1: c, c, or 1 (0 for none).
    brevity : float from 0 to 1
        How few tokens should decide. 0: the prior of the attention is uniform, many share a decision. Up to 0.2:
        attention begins at the tokens that tell the classes apart. Beyond: small contributions are silenced after
        training. The default costs next to no accuracy; 0.8 costs less than half a point on long reviews, where three
        tokens then suffice (the median).
    class_weight : None, "balanced" or dict
    random_state : checked and kept; training draws no random numbers.
    threads : int or None
        None: all cores. The result is the same to the bit for any number.
    max_iter : int
        Stop after so many steps; the prior's `tol` mostly stops earlier.
    verbose : 0 or 1: a progress bar.
    prior : Prior or None
        What training believes before it sees a text (see `Prior`); None: the defaults.

    Attributes
    ----------
    classes_, attention_ (V,), values_ (1 or K, V), intercept_, log_sink_, mean_attention_, class_counts_ (K, V),
    n_iter_, status_ (a sentence), history_ (the objective at the start and after each step).

    Examples
    --------
    >>> X = [[2, 0, 1], [1, 0, 2], [0, 2, 1], [0, 1, 1]]
    >>> clf = AttentionClassifier().fit(X, ["good", "good", "bad", "bad"])
    >>> clf.predict([[3, 0, 1], [0, 1, 5]]).tolist()
    ['good', 'bad']
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> AttentionClassifier:
        """Fit to counts X (n, V), dense or sparse."""
        self.check_options()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        check_classification_targets(y)
        largest = float(abs(X).max()) if 0 not in X.shape else 0.0
        if largest > LARGEST:
            raise refusal("AttentionClassifier.fit", "X", f"have entries up to {LARGEST:g}", largest, "divide them all")
        signed = _least(X) < 0
        C = self._counts(X, signed)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            seen = Seen(f"one class only, {classes.tolist()[0]!r}")
            advice = "add documents of another class"
            raise refusal("AttentionClassifier.fit", "y", "have at least two classes", seen, advice)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        weight = class_weighted(self.class_weight, y, weight)
        data = self._training_set(blocks_of(C, len(classes)), len(classes), codes, weight)
        self._learn(data, classes, signed_=signed)
        return self

    def _counts(self, X: Any, signed: bool) -> sparse.csr_matrix:
        C = sparse.csr_matrix(X, copy=False)
        if C.nnz and (not C.has_canonical_format or (C.data == 0).any()):
            C = C.copy()
            C.sum_duplicates()
            C.eliminate_zeros()
        if signed:
            C = sparse.hstack([C.maximum(0), (-C).maximum(0)], format="csr")
        return weigh(C, self.counts)

    def _scores(self, X: Any) -> Float:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        if not self.signed_ and _least(X) < 0:
            advice = "fit with such entries, or leave them out"
            raise refusal("predict", "X", "have no negative entry, as in training", _least(X), advice)
        return scores(self._counts(X, self.signed_), self._theta)


def _least(X: Any) -> float:
    """The least entry of a matrix, at most 0."""
    data = X.data if isinstance(X, sparse.csr_matrix | sparse.csr_array) else X
    return float(data.min(initial=0.0))
