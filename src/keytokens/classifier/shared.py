"""What both estimators share: options, training on blocks, probabilities from scores."""

from __future__ import annotations

import functools
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..core.attention import Parameters
from ..core.counts import COUNTS, Block, Float
from ..core.embeddings import Embeddings, embed
from ..core.losses import log_probabilities, probabilities
from ..errors import refusal
from ..fitting import check_memory, check_weights, progress
from ..optim.lbfgs import LBFGSState
from ..parallel import cores
from ..streaming import Workplace
from ..training import TrainingSet, fit_scalars
from ..validate import check_choice, check_number, check_seed
from .prior import Prior

__all__ = ["Attention", "Exact"]


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


class Attention(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What both estimators share: the options of the model, training on blocks, and probabilities from scores."""

    classes_: NDArray[Any]
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
        check_choice(owner, "counts", self.counts, COUNTS)
        if self.prior is not None and not isinstance(self.prior, Prior):
            raise refusal(owner, "prior", "be a Prior or None", self.prior, "for example prior=Prior(sink=0)")
        self._prior.check_options()
        check_number(owner, "brevity", self.brevity, 0)
        if self.brevity > 1:
            raise refusal(owner, "brevity", "be a number from 0 to 1", self.brevity)
        check_number(owner, "max_iter", self.max_iter, 1, whole=True)
        if self.class_weight is not None and not isinstance(self.class_weight, dict):
            check_choice(owner, "class_weight", self.class_weight, ("balanced",))
        check_number(owner, "threads", self.threads, 1, whole=True, none=True)
        check_seed(owner, "random_state", self.random_state)

    @property
    def _prior(self) -> Prior:
        return Prior() if self.prior is None else self.prior

    @property
    def _threads(self) -> int:
        return cores() if self.threads is None else int(self.threads)

    def _train(
        self,
        blocks: list[Block],
        classes: NDArray[Any],
        y: NDArray[np.intp],
        weight: Float,
        sizes: NDArray[np.integer[Any]] | None = None,
        place: Workplace | None = None,
        **more: Any,
    ) -> None:
        """Fit to counts that are weighed already; the model changes in one instant, when all has gone well.

        `place` keeps states of the training.
        """
        n_classes = len(classes)
        owner = f"{type(self).__name__}.fit"
        dtype = blocks[0].dtype
        check_memory(owner, n_classes, blocks[0].n_tokens, len(y), dtype.itemsize)
        weight = check_weights(owner, weight, dtype)
        data = TrainingSet.of(blocks, y, weight, n_classes, self._threads, sizes)
        self._learn(data, classes, place, **more)

    def _learn(self, data: TrainingSet, classes: NDArray[Any], place: Workplace | None = None, **more: Any) -> None:
        """Fit to documents wherever they lie."""
        prior = self._prior
        options = prior.options(self.brevity)
        state, history = (place and place.state()) or (None, [])
        resumed = None if state is None else (state, len(history))
        with progress(self.verbose) as tick:

            def watch(state: LBFGSState) -> None:
                if place is not None:
                    place.tick(state, history)
                history.append(state.value)
                tick(state.value)

            done = fit_scalars(data, options, self.max_iter, prior.tol, watch, resumed)
        theta = done.theta
        self.__dict__.update(
            classes_=classes,
            attention_=theta.a,
            values_=theta.B,
            intercept_=theta.c,
            empty_=theta.empty,
            log_sink_=theta.log_sink,
            mean_attention_=data.mean_attention(theta),
            class_counts_=done.presence,
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

    def _scores(self, X: Any) -> Float:
        raise NotImplementedError

    def decision_function(self, X: Any) -> Float:
        """f: (n,) for two classes, positive for `classes_[1]`; (n, K) for more."""
        F = self._scores(X)
        return F[0] if len(F) == 1 else F.T

    def predict_proba(self, X: Any) -> Float:
        """The probability of each class, (n, K)."""
        return probabilities(self._scores(X)).T

    def predict_log_proba(self, X: Any) -> Float:
        """The logarithm of each probability, (n, K): finite also where the probability itself rounds to 0."""
        return log_probabilities(self._scores(X)).T

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest probability; the first of them if several are equal."""
        P = self.predict_proba(X)
        return self.classes_[P.argmax(axis=1)]

    def to_embeddings(self, dim: int | None = None) -> Embeddings:
        """E, p, v in dimension `dim` (None: the least that can hold the model) with the same f (see `Embeddings`)."""
        check_is_fitted(self)
        least = len(self.values_) + 1
        check_number("to_embeddings", "dim", dim, least, whole=True, none=True)
        return embed(self._theta, least if dim is None else dim)
