"""The two estimators: `AttentionClassifier` on a matrix of counts, and `KeyTokenClassifier`, its front for text."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .compression import TokenModel, largest_within, shrink
from .core.attention import Parameters, scores
from .core.counts import COUNTS, Float, blocks_of, weigh
from .core.embeddings import Embeddings, embed
from .core.losses import probabilities
from .core.prior import PriorOptions
from .errors import refusal
from .explain import explain_texts, read_together
from .explanation import Explanation, KeyToken
from .fitting import check_memory, check_weights, class_weighted, progress
from .optim.lbfgs import LBFGSState
from .parallel import cores, ordered_map
from .streaming import LEAST_MEMORY, Workplace, gather
from .text import Limits, Vocabulary, build, count
from .text.counts import PIECE
from .training import TrainingSet, fit_embeddings, fit_scalars
from .validate import Seen, check_choice, check_labels, check_number, check_range, check_texts, check_truth

if TYPE_CHECKING:
    from .report.explorer import PageModel

__all__ = ["AttentionClassifier", "KeyTokenClassifier"]

LARGEST = 1e12  # of an entry of a matrix, so that sums of squares stay finite in single precision
_LARGEST_OPTION = 1e9  # for the same reason


def frozen(theta: Parameters) -> Parameters:
    """The parameters in double precision: what every prediction and every proof uses.

    With more than two classes, what is added to all scores of a token changes nothing: they are made to sum to 0.
    """
    a, B, c, empty = (np.asarray(x, np.float64) for x in (theta.a, theta.B, theta.c, theta.empty))
    if len(c) > 1:
        B, c = B - B.mean(axis=0), c - c.mean()
    return Parameters(a, B, c, empty, theta.log_sink)


class _Attention(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What both estimators share: the options of the model, training on blocks, and probabilities from scores."""

    classes_: NDArray[Any]
    attention_: Float
    values_: Float
    intercept_: Float
    empty_: Float
    log_sink_: float

    def __init__(
        self,
        *,
        counts: str = "raw",
        sink: float = 0.3,
        ratio: float = 1.5,
        spread: float = 1.6,
        attention_penalty: float = 1.0,
        brevity: float = 0.3,
        parameters: str = "scalars",
        dim: int = 64,
        max_iter: int = 100,
        tol: float = 0.04,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.counts = counts
        self.sink = sink
        self.ratio = ratio
        self.spread = spread
        self.attention_penalty = attention_penalty
        self.brevity = brevity
        self.parameters = parameters
        self.dim = dim
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.threads = threads
        self.verbose = verbose

    def check_options(self) -> None:
        """Refuse options that break a rule, as `fit` does before it begins."""
        owner = type(self).__name__
        check_choice(owner, "counts", self.counts, COUNTS)
        check_choice(owner, "parameters", self.parameters, ("scalars", "embeddings"))
        for name in ("sink", "ratio"):
            check_number(owner, name, getattr(self, name), 0)
        for name in ("spread", "attention_penalty", "tol"):
            check_number(owner, name, getattr(self, name), 0, above=True)
        for name in ("sink", "ratio", "spread", "attention_penalty"):
            if getattr(self, name) > _LARGEST_OPTION:
                raise refusal(owner, name, f"be at most {_LARGEST_OPTION:g}", getattr(self, name))
        check_number(owner, "brevity", self.brevity, 0)
        if self.brevity > 1:
            raise refusal(owner, "brevity", "be a number from 0 to 1", self.brevity)
        check_number(owner, "max_iter", self.max_iter, 1, whole=True)
        if self.class_weight is not None and not isinstance(self.class_weight, dict):
            check_choice(owner, "class_weight", self.class_weight, ("balanced",))
        check_number(owner, "dim", self.dim, 2, whole=True)
        check_number(owner, "threads", self.threads, 1, whole=True, none=True)

    @property
    def _threads(self) -> int:
        return cores() if self.threads is None else int(self.threads)

    def _train(
        self,
        counts: sparse.csr_matrix,
        classes: NDArray[Any],
        y: NDArray[np.intp],
        weight: Float,
        warm: bool,
        sizes: NDArray[np.int32] | None = None,
        let_go: Callable[[int, int], None] | None = None,
        place: Workplace | None = None,
        **more: Any,
    ) -> None:
        """Fit to counts that are weighed already; the model changes in one instant, when all has gone well.

        `let_go` gives back the memory of entries that lie in a file, and `place` keeps states of the training.
        """
        n_classes = len(classes)
        owner = f"{type(self).__name__}.fit"
        dim = self.dim if self.parameters == "embeddings" else 0
        check_memory(owner, n_classes, counts.shape[1], counts.shape[0], dim, counts.dtype.itemsize)
        weight = check_weights(owner, weight, counts.dtype)
        data = TrainingSet.of(blocks_of(counts, let_go), y, weight, n_classes, self._threads, sizes)
        self._learn(data, classes, warm, place, **more)

    def _learn(
        self, data: TrainingSet, classes: NDArray[Any], warm: bool, place: Workplace | None = None, **more: Any
    ) -> None:
        """Fit to documents wherever they lie."""
        n_classes = len(classes)
        options = PriorOptions(self.ratio, self.spread, self.sink, self.attention_penalty, self.brevity)
        seed = check_random_state(self.random_state)
        state, history = (place and place.state()) or (None, [])
        resumed = None if state is None else (state, len(history))
        with progress(self.verbose) as tick:

            def watch(state: LBFGSState) -> None:
                if place is not None:
                    place.tick(state, history)
                history.append(state.value)
                tick(state.value)

            if self.parameters == "scalars":
                start = self._present() if warm else None
                done = fit_scalars(data, options, self.max_iter, self.tol, start, watch, resumed)
            else:
                self._check_dim(n_classes)
                done, (E, p, v) = fit_embeddings(data, options, self.dim, seed, self.max_iter, self.tol, watch)
                more |= {"E_": E, "p_": p, "v_": v}
        theta = done.theta
        self.__dict__.update(
            classes_=classes,
            attention_=theta.a,
            values_=theta.B,
            intercept_=theta.c,
            empty_=theta.empty,
            log_sink_=theta.log_sink,
            mean_attention_=data.mean_attention(theta),
            class_counts_=done.statistics.presence,
            n_iter_=done.steps,
            status_=done.status.value,
            history_=np.array(history),
            _theta=frozen(theta),
            **more,
        )

    def _present(self) -> Parameters:
        """The parameters as they were trained."""
        return Parameters(self.attention_, self.values_, self.intercept_, self.empty_, self.log_sink_)

    def _check_dim(self, n_classes: int) -> None:
        least = 2 if n_classes == 2 else n_classes + 1
        check_number(type(self).__name__, "dim", self.dim, least, whole=True)

    def _may_go_on(self, classes: NDArray[Any], n_tokens: int) -> bool:
        """Whether a warm start is wanted and the present parameters fit."""
        return bool(
            self.warm_start
            and hasattr(self, "attention_")
            and np.array_equal(self.classes_, classes)
            and self.attention_.shape == (n_tokens,)
        )

    def _scores(self, X: Any) -> Float:
        raise NotImplementedError

    def decision_function(self, X: Any) -> Float:
        """f: (n,) for two classes, positive for `classes_[1]`; (n, K) for more."""
        F = self._scores(X)
        return F[0] if len(F) == 1 else F.T

    def predict_proba(self, X: Any) -> Float:
        """The probability of each class, (n, K)."""
        return probabilities(self._scores(X)).T

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest probability; the first of them if several are equal."""
        P = self.predict_proba(X)
        return self.classes_[P.argmax(axis=1)]

    def to_embeddings(self, dim: int | None = None) -> Embeddings:
        """E, p, v in dimension `dim` with the same f as this model (see `Embeddings`)."""
        check_is_fitted(self)
        dim = self.dim if dim is None else dim
        check_number("to_embeddings", "dim", dim, len(self.values_) + 1, whole=True)
        return embed(self._theta, dim)


class AttentionClassifier(_Attention):
    """One layer of softmax attention on a matrix of counts, f = C(w b) / (C w + w0) + c with w = exp(a).

    Amounts that are no counts will do as well. A negative amount is that much of an opposite token, which gets an
    attention and a value of its own: columns V to 2V of the parameters, made only if such entries occur in training.

    Parameters
    ----------
    counts : "raw", "log" or "binary"
        The weight of a token that occurs c times: c, 1 + log c, or 1.
    sink : float
        The weight of the sink, in mean document weights. 0: no sink, the model of the paper.
    ratio, spread : float
        The prior of the values: how much of the log-count ratio its mean holds, and how wide it is.
    attention_penalty : float
        Precision of the prior of the attention logits: large for attention that stays close to it.
    brevity : float from 0 to 1
        How few tokens should decide. 0: the prior of the attention is uniform, many share a decision. Up to 0.2:
        attention begins at the tokens that tell the classes apart. Beyond: small contributions are silenced after
        training (`parameters="scalars"` only). The default costs next to no accuracy; 0.8 costs less than half a point
        on long reviews, where three tokens then suffice (the median).
    parameters : "scalars" or "embeddings"
        Train a and b directly, or E, p and v in dimension `dim` as the paper does: slower and, with the prior that it
        cannot use, less accurate. Both are the same model.
    max_iter, tol :
        Stop after so many steps, or when two steps in a row lower the objective by less than this share of it each. The
        default stops early, which predicts better than the exact minimum; for that one, try 1e-6.
    class_weight : None, "balanced" or dict
    warm_start : bool
        Begin the next `fit` at the present parameters if the shapes agree.
    random_state : only `parameters="embeddings"` draws random numbers.
    threads : int or None
        None: all cores. The result is the same to the bit for any number.
    verbose : 0 or 1: a progress bar.

    Attributes
    ----------
    classes_, attention_ (V,), values_ (1 or K, V), intercept_, log_sink_, mean_attention_, class_counts_ (K, V),
    n_iter_, status_ (a sentence), history_ (the objective at the start and after each step); with
    `parameters="embeddings"` also E_ (V, d), p_ (d,) and v_ (1 or K, d) as they were trained.

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
            cure = "add documents of another class"
            raise refusal("AttentionClassifier.fit", "y", "have at least two classes", seen, cure)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        warm = self._may_go_on(classes, C.shape[1])
        self._train(C, classes, codes, class_weighted(self.class_weight, y, weight), warm, signed_=signed)
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
            cure = "fit with such entries, or leave them out"
            raise refusal("predict", "X", "have no negative entry, as in training", _least(X), cure)
        return scores(self._counts(X, self.signed_), self._theta)


def _least(X: Any) -> float:
    """The least entry of a matrix, at most 0."""
    data = X.data if isinstance(X, sparse.csr_matrix | sparse.csr_array) else X
    return float(data.min(initial=0.0))


class KeyTokenClassifier(_Attention):
    """A text classifier that shows, and proves, which tokens decide.

    Parameters
    ----------
    ngrams : (least, most) words in a token
    min_df : int or tuple
        In how many texts a token must occur, for n = 1, 2, ...; the last entry goes on.
    max_df : float
        In what share of the texts it may occur at most.
    max_tokens : int or None
        Keep the most frequent ones only.

    The others are those of `AttentionClassifier`.

    Attributes
    ----------
    classes_, vocabulary_ (a `Vocabulary`; its `tokens` are the columns), and those of `AttentionClassifier`.

    Examples
    --------
    >>> texts = ["a great film", "great acting", "a dull plot", "dull, dull, dull"]
    >>> clf = KeyTokenClassifier().fit(texts, ["pos", "pos", "neg", "neg"])
    >>> clf.predict(["what a great plot!"]).tolist()
    ['pos']
    """

    vocabulary_: Vocabulary

    def __init__(
        self,
        ngrams: tuple[int, int] = (1, 3),
        *,
        min_df: int | tuple[int, ...] = (1, 2),
        max_df: float = 1.0,
        max_tokens: int | None = None,
        counts: str = "raw",
        sink: float = 0.3,
        ratio: float = 1.5,
        spread: float = 1.6,
        attention_penalty: float = 1.0,
        brevity: float = 0.3,
        parameters: str = "scalars",
        dim: int = 64,
        max_iter: int = 100,
        tol: float = 0.04,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.ngrams = ngrams
        self.min_df = min_df
        self.max_df = max_df
        self.max_tokens = max_tokens
        super().__init__(
            counts=counts,
            sink=sink,
            ratio=ratio,
            spread=spread,
            attention_penalty=attention_penalty,
            brevity=brevity,
            parameters=parameters,
            dim=dim,
            max_iter=max_iter,
            tol=tol,
            class_weight=class_weight,
            warm_start=warm_start,
            random_state=random_state,
            threads=threads,
            verbose=verbose,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        return tags

    def check_options(self) -> None:
        """Refuse options that break a rule, as `fit` does before it begins."""
        super().check_options()
        self._limits()

    def _limits(self) -> Limits:
        owner = type(self).__name__
        ngrams = check_range(owner, "ngrams", self.ngrams)
        min_df = tuple(self.min_df) if isinstance(self.min_df, (tuple, list)) else (self.min_df,)
        for least in min_df or ((),):
            check_number(owner, "min_df", least, 1, whole=True)
        check_number(owner, "max_df", self.max_df, 0, above=True)
        if self.max_df > 1:
            raise refusal(owner, "max_df", "be a share of the texts, above 0 and at most 1", self.max_df)
        check_number(owner, "max_tokens", self.max_tokens, 1, whole=True, none=True)
        return Limits(ngrams, tuple(map(int, min_df)), float(self.max_df), self.max_tokens)

    def fit(self, texts: Iterable[str], labels: Iterable[Any], sample_weight: Any = None) -> KeyTokenClassifier:
        """Fit to texts and their labels: strings, integers or booleans, all of one kind, two classes or more."""
        self.check_options()
        texts = check_texts("fit", texts)
        y = check_labels("fit", labels, len(texts))
        weight = self._sample_weight(sample_weight, len(texts))
        vocabulary, counts = build(texts, self._limits(), self._threads)
        if not len(vocabulary):
            cure = "lower min_df, raise max_df, or look at the texts"
            raise refusal("fit", "texts", "hold at least one token within the limits", f"{len(texts)} texts", cure)
        classes, codes = np.unique(y, return_inverse=True)
        warm = self._may_go_on(classes, len(vocabulary)) and self.vocabulary_.tokens == vocabulary.tokens
        data = weigh(counts, self.counts)
        weight = class_weighted(self.class_weight, y, weight)
        self._train(data, classes, codes, weight, warm, vocabulary.sizes, vocabulary_=vocabulary)
        return self

    def fit_batches(
        self,
        batches: Iterable[tuple[Sequence[str], Sequence[Any]]],
        *,
        memory: int | None = None,
        folder: str | os.PathLike[str] | None = None,
        resume: bool = False,
        source: str = "",
        relabel: Callable[[list[Any]], list[Any]] | None = None,
    ) -> KeyTokenClassifier:
        """`fit` to batches (texts, labels) that together may be larger than the memory; the model is the same.

        The batches are read once; what is made of them lies in files. `memory`, in bytes, is what the whole process
        should hold: if more tokens were found than may be trained in it, the most frequent ones are kept (as by
        `max_tokens`). With a `folder` of its own a fit saves its state every few seconds, and after an interruption
        `resume=True` goes on there and ends with the same bits; `source` is any text that says which data these are.
        The folder may be removed when the fit is done. `relabel` turns the distinct labels, once all are known, into
        those of the model.
        """
        self.check_options()
        check_number("fit_batches", "memory", memory, LEAST_MEMORY, whole=True, none=True)
        if self.parameters != "scalars":
            raise refusal("fit_batches", "parameters", "be 'scalars'", self.parameters)
        with TemporaryDirectory() if folder is None else nullcontext(folder) as given:
            options = {k: repr(v) for k, v in self.get_params().items() if k not in ("threads", "verbose")}
            place = Workplace(Path(given), {**options, "source": source, "memory": memory}, resume)
            found = place.kept()
            if found is None:
                try:
                    found = gather(batches, self._limits(), self.counts, self._threads, memory, place, relabel)
                except BaseException:
                    place.leave()
                    raise
                if folder is not None:
                    place.keep(found)
            labels = found.classes[found.y] if isinstance(self.class_weight, dict) else found.y
            weight = class_weighted(self.class_weight, labels, np.ones(len(labels)))
            self._train(
                found.counts,
                found.classes,
                found.y,
                weight,
                False,
                found.vocabulary.sizes,
                found.let_go,
                None if folder is None else place,
                vocabulary_=found.vocabulary,
            )
        return self

    def _sample_weight(self, given: Any, n: int) -> Float:
        if given is None:
            return np.ones(n)
        weight = np.asarray(given, np.float64)
        if weight.shape != (n,) or not np.isfinite(weight).all() or (weight < 0).any():
            raise refusal("fit", "sample_weight", f"be {n} finite numbers, none negative", given)
        return weight

    def _scores(self, texts: Iterable[str]) -> Float:
        self._check_fitted()
        listed = check_texts("predict", texts)
        theta = self._theta

        def one(some: list[str]) -> Float:
            return scores(weigh(count(some, self.vocabulary_), self.counts), theta)

        if 0 < len(listed) <= PIECE:
            return one(listed)
        done = ordered_map(lambda at: one(listed[at : at + PIECE]), range(0, len(listed), PIECE), self._threads)
        return np.concatenate(done, axis=1) if done else np.zeros((len(theta.c), 0))

    def explain(self, text: str) -> Explanation:
        """Why this text gets its label, with what is proved of it."""
        self._check_fitted()
        if not isinstance(text, str):
            raise refusal("explain", "text", "be one string", text)
        return self._explain([text])[0]

    def explain_many(self, texts: Iterable[str]) -> Iterator[Explanation]:
        """`explain` of one text after the other, in order, as they are asked for; faster, since some are read together.

        Texts may come from a generator that never ends: no more than a few dozen are held.
        """
        self._check_fitted()
        if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
            raise refusal("explain_many", "texts", "be an iterable of strings", texts, "put the one text in a list")
        return chain.from_iterable(map(self._explain, read_together(texts)))

    def _explain(self, texts: list[str]) -> list[Explanation]:
        return explain_texts(texts, self.vocabulary_, self._theta, self.classes_.tolist(), self.counts)

    def _check_fitted(self) -> None:
        if not hasattr(self, "_theta"):
            check_is_fitted(self)  # slow, so only to refuse in scikit-learn's own words

    def key_tokens(self, n: int = 20) -> dict[Any, list[KeyToken]]:
        """For each class the n tokens that speak most for it, by mean contribution over the training documents."""
        check_is_fitted(self)
        check_number("key_tokens", "n", n, 0, whole=True)
        theta, classes = self._theta, self.classes_.tolist()
        values = theta.B + theta.c[:, None]
        if len(values) == 1:
            values = np.concatenate([-values, values])
        names, counts = self.vocabulary_.tokens, self.class_counts_
        found = {}
        for label, value in zip(classes, values, strict=True):
            contribution = self.mean_attention_ * value
            best = np.argsort(-contribution, kind="stable")[:n]
            found[label] = [
                KeyToken(
                    names[s],
                    float(contribution[s]),
                    float(self.mean_attention_[s]),
                    float(value[s]),
                    {other: round(float(counts[k, s])) for k, other in enumerate(classes)},
                )
                for s in best.tolist()
                if contribution[s] > 0
            ]
        return found

    def pruned(self, max_tokens: int) -> KeyTokenClassifier:
        """The same model with fewer tokens: those with the largest mean contribution, of either sign, are kept.

        The others are then words that the model does not know; what is kept has the numbers it had.
        """
        check_is_fitted(self)
        check_number("pruned", "max_tokens", max_tokens, 1, whole=True)
        values = self._theta.B + self._theta.c[:, None]
        said = self.mean_attention_ * np.abs(values).max(axis=0)
        kept = np.sort(np.argsort(-said, kind="stable")[:max_tokens])
        names = self.vocabulary_.tokens
        model = clone(self)
        model.__dict__.update(
            {name: value for name, value in self.__dict__.items() if name.endswith("_")},
            vocabulary_=Vocabulary.from_tokens([names[s] for s in kept.tolist()]),
            attention_=self.attention_[kept],
            values_=self.values_[:, kept],
            mean_attention_=self.mean_attention_[kept],
            class_counts_=self.class_counts_[:, kept],
        )
        if hasattr(self, "E_"):
            model.E_ = self.E_[kept]
        model._theta = frozen(model._present())
        return model

    def compressed(self, max_bytes: int) -> KeyTokenClassifier:
        """A model that takes at most `max_bytes` on disk: numbers on a coarse grid and, if need be, fewer tokens.

        It is a model of its own: what it stores is what it predicts, explains and proves with, to the bit. With all
        tokens its scores differ from the present ones by about 0.02; those that go say least (see `compression`).
        """
        from .persist import size_on_disk

        check_is_fitted(self)
        check_number("compressed", "max_bytes", max_bytes, 1, whole=True)
        whole = replace(self.token_model(), theta=self._theta)
        model, size = largest_within(
            lambda tokens: self._with(shrink(whole, tokens)), size_on_disk, int(max_bytes), len(self.vocabulary_)
        )
        if size > max_bytes:
            raise refusal("compressed", "max_bytes", f"be at least {size}, to hold one token", max_bytes)
        return model

    def token_model(self) -> TokenModel:
        """The model as `compression` sees it, with the parameters as they were trained or rounded."""
        check_is_fitted(self)
        return TokenModel(self.vocabulary_, self._present(), self.mean_attention_, self.class_counts_)

    def _with(self, small: TokenModel) -> KeyTokenClassifier:
        """The same options and history, other tokens and numbers; embeddings are not kept."""
        model = clone(self)
        model.__dict__.update(
            {name: value for name, value in self.__dict__.items() if name.endswith("_")},
            vocabulary_=small.vocabulary,
            attention_=small.theta.a,
            values_=small.theta.B,
            intercept_=small.theta.c,
            empty_=small.theta.empty,
            log_sink_=small.theta.log_sink,
            mean_attention_=small.mean_attention,
            class_counts_=small.class_counts,
        )
        for name in ("E_", "p_", "v_"):
            model.__dict__.pop(name, None)
        model._theta = frozen(model._present())
        return model

    def page_model(self, whole_size: int | None = None) -> PageModel:
        """The model as plain data for a page; `whole_size` is the number of tokens before pruning, if there was any."""
        from .report.explorer import PageModel

        check_is_fitted(self)
        return PageModel(
            classes=self.classes_.tolist(),
            tokens=self.vocabulary_.tokens,
            order=self.vocabulary_.order,
            counts=self.counts,
            attention=self.attention_,
            values=self.values_,
            intercept=self._theta.c,
            empty=self._theta.empty,
            log_sink=self.log_sink_,
            mean_attention=self.mean_attention_,
            class_counts=self.class_counts_,
            history=self.history_.tolist(),
            status=self.status_,
            options=self.get_params(deep=False),
            whole_size=whole_size,
        )

    def report(
        self,
        path: str | os.PathLike[str],
        texts: Iterable[str],
        labels: Iterable[Any],
        *,
        title: str | None = None,
        max_tokens: int | None = None,
        max_documents: int = 2000,
    ) -> dict[str, Any]:
        """Write one page with the model alive inside it and its score on these texts; returns the page's numbers.

        `max_tokens` prunes the model first (see `pruned`); of more than `max_documents` texts those that are wrong,
        those that are unsure and some drawn by lot go into the page, while the score is of all.
        """
        from .report.explorer import write_report  # a door: rendering lives above

        check_is_fitted(self)
        check_number("report", "max_tokens", max_tokens, 1, whole=True, none=True)
        check_number("report", "max_documents", max_documents, 1, whole=True)
        listed = check_texts("report", texts)
        truth = check_truth("report", labels, len(listed))
        whole = len(self.vocabulary_)
        model = self if max_tokens is None or max_tokens >= whole else self.pruned(max_tokens)
        shown = model.page_model(None if model is self else whole)
        P = model.predict_proba(listed)
        return write_report(Path(path), shown, listed, truth, P, title or Path(path).stem, max_documents)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a directory, whole or not at all."""
        from .persist import save

        check_is_fitted(self)
        save(self, path)
