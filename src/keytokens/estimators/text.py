"""The estimator on texts: it makes counts of them, and explanations of its predictions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..base.checks import check_labels, check_number, check_range, check_texts, check_truth, one_column, text_advice
from ..base.errors import refusal
from ..base.threads import ordered_map
from ..model.blocks import Block, Float, blocks_of
from ..model.weighting import WEIGHTINGS
from ..text.ngrams import Limits, build
from ..text.spill import Threads
from ..text.vocabulary import Vocabulary
from ..text.words import blocks
from ..training.fit import TrainingSet, taught
from ..training.teaching import Teaching
from ..training.weights import class_weighted, sample_weights
from .attention import Attention, Exact
from .crossfit import Parts, cross_fit, remembered
from .evaluation import OUT_OF_FOLD, Evaluation, evaluate, stored
from .locate import explain_texts, predicted, read_together
from .prior import Prior
from .teachers import ESTIMATOR, SELF, Teacher, Unlabeled, judge
from .unseen import Unseen

if TYPE_CHECKING:  # loaded by the methods that need them: a model that only predicts does not wait for them
    from ..explain.text import Explanation, KeyTokens
    from .compression import TokenModel


class KeyTokenClassifier(Attention):
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
    cross_fit : int
        So many folds: for each of them a model is fitted to the others and asked about it. The model then keeps an
        honest score (see `evaluate`), and its probabilities are calibrated on these answers. 0 leaves it out, and the
        probabilities of the two differ.

    The others are those of `AttentionClassifier`.

    Attributes
    ----------
    classes_, vocabulary_ (a `Vocabulary`; its `tokens` are the columns), dropped_ (None, or what a budget of memory
    has cost: {"tokens": dropped, "of": found, "why": a sentence}), unseen_ (None, or an `Unseen`: what models that had
    not seen the texts said of them, and hashes of texts of the training), about_ (None, or what `keytokens fit` noted:
    texts, day, columns), and those of `AttentionClassifier`.

    Examples
    --------
    >>> texts = ["a great film", "great acting", "a dull plot", "dull, dull, dull"]
    >>> clf = KeyTokenClassifier().fit(texts, ["pos", "pos", "neg", "neg"])
    >>> clf.predict(["what a great plot!"]).tolist()
    ['pos']
    """

    vocabulary_: Vocabulary
    dropped_: dict[str, Any] | None = None  # on the class for models whose fit knows of no budget
    unseen_: Unseen | None = None
    about_: dict[str, Any] | None = None
    taught_: dict[str, Any] | None = None

    def __init__(
        self,
        ngrams: tuple[int, int] = (1, 3),
        *,
        min_df: int | tuple[int, ...] = (1, 2, 3),
        max_df: float = 1.0,
        max_tokens: int | None = None,
        counts: str = "raw",
        brevity: float = 0.3,
        class_weight: Any = None,
        random_state: Any = None,
        threads: int | None = None,
        max_iter: int = 100,
        verbose: int = 0,
        prior: Prior | None = None,
        cross_fit: int = 0,
    ) -> None:
        self.cross_fit = cross_fit
        self.ngrams = ngrams
        self.min_df = min_df
        self.max_df = max_df
        self.max_tokens = max_tokens
        super().__init__(
            counts=counts,
            brevity=brevity,
            class_weight=class_weight,
            random_state=random_state,
            threads=threads,
            max_iter=max_iter,
            verbose=verbose,
            prior=prior,
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
        check_number(type(self).__name__, "cross_fit", self.cross_fit, 0, whole=True)
        if self.cross_fit == 1:
            raise refusal(type(self).__name__, "cross_fit", "be 0, or 2 folds or more", 1)
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

    def fit(
        self,
        texts: Iterable[str],
        labels: Iterable[Any],
        sample_weight: Any = None,
        *,
        unlabeled: Iterable[str] | None = None,
        teacher: Any = SELF,
        teacher_weight: float = 1.0,
        teacher_loss: float = 0.0,
    ) -> KeyTokenClassifier:
        """Fit to texts and their labels: strings, integers or booleans, all of one kind, two classes or more.

        Texts and labels are lists, or columns of NumPy, pandas, polars or Arrow. Whole floats (0.0 and 1.0) are read as
        integers.

        Texts without labels help where labels are few. A teacher says what they are: the model itself ("self"), an
        estimator of texts with `predict_proba` (it is fitted to the labelled texts), a function from texts to
        probabilities, or an array of them, a row a text and a column a class, in the order of `classes_`. What it says
        moves the prior, as much as labelled texts do times `teacher_weight`; with `teacher_loss` it is trained on too.
        """
        self.check_options()
        texts = check_texts("fit", texts)
        y = check_labels("fit", labels, len(texts))
        given = sample_weights("fit", sample_weight, len(texts))
        classes, codes = np.unique(y, return_inverse=True)
        unseen = remembered(texts, len(classes))
        guide = Teacher.of(teacher, teacher_weight, teacher_loss)
        others, told = self._told_of(texts, y, classes, unlabeled, guide)
        if self.cross_fit:
            unseen = self._out_of_fold(texts, y, given, classes, others, told, guide).beside(unseen)
        built = build(chain(texts, others), self._limits(), Threads(self._threads))
        vocabulary, ends, weigh = built.vocabulary, (0, len(texts), built.n_texts), WEIGHTINGS[self.counts]
        del others
        matrices = [built.matrix(weigh, *span) for span in pairwise(ends)]
        del built
        if not len(vocabulary):
            advice = "lower min_df, raise max_df, or look at the texts"
            raise refusal("fit", "texts", "hold at least one token within the limits", f"{len(texts)} texts", advice)
        weight = class_weighted(self.class_weight, y, given)
        del texts, y  # a list and an array of our own
        some, more = (blocks_of(matrices.pop(0), len(classes)) for _ in range(2))
        data = self._training_set(some, len(classes), codes, weight, vocabulary.sizes)
        facts: dict[str, Any] = {"vocabulary_": vocabulary, "dropped_": None, "about_": None}
        self._learn(data, classes, **self._taught(data, more, told, guide), **facts)
        self.keep(unseen)
        return self

    def _told_of(
        self, texts: list[str], y: NDArray[Any], classes: NDArray[Any], unlabeled: Any, teacher: Teacher
    ) -> tuple[list[str], NDArray[Any]]:
        """The texts without labels that are new, and what the teacher says of them."""
        if unlabeled is None:
            return [], np.zeros(0, np.intp)
        others = Unlabeled([unlabeled], teacher.fitted(texts, y))
        others.labelled(texts)
        return list(chain.from_iterable(others.texts(lambda: classes))), others.told

    def _taught(self, data: TrainingSet, more: list[Block], told: NDArray[Any], teacher: Teacher) -> dict[str, Any]:
        """What `_learn` is to know of texts without labels."""
        if not len(told):
            return {"teaching": None, "taught_": None}
        ones = np.ones(len(told))
        documents = self._training_set(more, data.n_classes, told, ones, data.sizes)
        return self._teaching(data, documents, teacher)

    def _teaching(self, data: TrainingSet, documents: TrainingSet, teacher: Teacher) -> dict[str, Any]:
        teaching = Teaching(documents, teacher.kind != SELF, teacher.weight, teacher.loss)
        n_texts, n_labelled = (sum(map(len, own.y)) for own in (documents, data))
        facts = {"teacher": teacher.kind, "texts": n_texts, "weight": teacher.weight, "loss": teacher.loss}
        if teaching.given:
            agreement, error = teaching.agreement(data, self._rules[0])
            judge(agreement, error, data.n_classes, n_labelled)
            facts["agreement"] = agreement
        return {"teaching": taught(data, *self._rules, teaching), "taught_": facts}

    def _out_of_fold(
        self,
        texts: list[str],
        y: NDArray[Any],
        weight: Float,
        classes: NDArray[Any],
        others: list[str],
        told: NDArray[Any],
        teacher: Teacher,
    ) -> Unseen:
        if told.ndim == 2 and teacher.kind != ESTIMATOR:  # which learns anew
            teacher = replace(teacher, given=told, classes=classes)

        def fit(rows: NDArray[np.intp]) -> KeyTokenClassifier:
            model = clone(self).set_params(cross_fit=0)
            own = [texts[row] for row in rows.tolist()]
            return model.fit(own, y[rows], weight[rows], unlabeled=others, teacher=teacher)

        parts = Parts(self.random_state if isinstance(self.random_state, int) else 0, folds=self.cross_fit)
        return cross_fit(texts, y.tolist(), parts, fit).unseen(classes.tolist()).calibrated()

    def keep(self, unseen: Unseen) -> None:
        """Keep the answers of models that had not seen the texts, and calibrate the probabilities as they are.

        All scores are multiplied by one number, and all probabilities pulled a little towards their mean: no label
        changes, and no minimum set.
        """
        scale = np.float32(unseen.scale)
        if scale != 1:
            for name in ("values_", "intercept_", "empty_"):
                setattr(self, name, getattr(self, name) * scale)
            self._exact = Exact(self._present())
        self.unseen_, self.label_noise_ = unseen, unseen.noise

    @property
    def calibrated_(self) -> bool:
        """Whether the probabilities were calibrated on out-of-fold answers."""
        return self.unseen_ is not None and len(self.unseen_) > 0 and self.unseen_.kind == OUT_OF_FOLD

    def evaluate(self, texts: Iterable[str] | None = None, labels: Iterable[Any] | None = None) -> Evaluation | None:
        """How good the model is: on these texts, or as it has kept it from its own training (None: it kept nothing).

        Texts of the training are recognised. What counts for them is what models without them have said, if
        `cross_fit` was used; otherwise the evaluation's kind is "seen in training".
        """
        check_is_fitted(self)
        if texts is None or labels is None:
            return stored(self)
        listed = check_texts("evaluate", texts)
        return evaluate(self, listed, check_truth("evaluate", labels, len(listed), self.classes_))

    def fit_batches(
        self,
        batches: Iterable[tuple[Sequence[str], Sequence[Any]]],
        *,
        memory: int | None = None,
        share: float = 1.0,
        folder: str | os.PathLike[str] | None = None,
        resume: bool = False,
        source: str = "",
        relabel: Callable[[list[Any]], list[Any]] | None = None,
        unlabeled: Iterable[Any] = (),
        teacher: Any = SELF,
        teacher_weight: float = 1.0,
        teacher_loss: float = 0.0,
    ) -> KeyTokenClassifier:
        """`fit` to batches (texts, labels) that together may be larger than the memory; the model is the same.

        The batches are read once; what is made of them lies in files. `memory`, in bytes, is what the whole process
        should hold: if more tokens were found than may be trained in it, the most frequent ones are kept (as by
        `max_tokens`) and `dropped_` says so; if it holds no useful number of them, the fit is refused. If these texts
        are a `share` of those of a later fit, one that would be refused then is refused now.

        With a `folder` of its own a fit saves its state every few seconds, and after an interruption `resume=True` goes
        on there and ends with the same bits; `source` is any text that says which data these are. The folder may be
        removed when the fit is done. `relabel` turns the distinct labels, once all are known, into those of the model.

        Texts without labels come in batches too. Their teacher is the model itself, or a function; or it is "given",
        and each batch is a pair (texts, probabilities).
        """
        from .streaming import LEAST_MEMORY, Budget, Workplace, gather

        self.check_options()
        guide = Teacher.of(teacher, teacher_weight, teacher_loss).of_batches()
        check_number("fit_batches", "memory", memory, LEAST_MEMORY, whole=True, none=True)
        with TemporaryDirectory() if folder is None else nullcontext(folder) as given:
            options: dict[str, Any] = {
                k: repr(v) for k, v in self.flat_params().items() if k not in ("threads", "verbose")
            }
            options |= {"source": source, "memory": memory, "teacher": [guide.kind, guide.weight, guide.loss]}
            place = Workplace(Path(given), options, resume)
            found = place.kept()
            if found is None:
                try:
                    budget = None if memory is None else Budget(int(memory), self._threads, share)
                    others = Unlabeled(unlabeled, guide)
                    found = gather(batches, self._limits(), self.counts, self._threads, budget, place, relabel, others)
                except BaseException:
                    place.leave()
                    raise
                if folder is not None:
                    place.keep(found)
            labels = found.classes[found.y] if isinstance(self.class_weight, dict) else found.y
            weight = class_weighted(self.class_weight, labels, np.ones(len(labels)))
            words = found.vocabulary.sizes
            some, more = found.blocks()
            data = self._training_set(some, len(found.classes), found.y, weight, words)
            kept = None if folder is None else place
            facts: dict[str, Any] = {"vocabulary_": found.vocabulary, "dropped_": found.dropped, "about_": None}
            self._learn(data, found.classes, kept, **self._taught(data, more, found.told, guide), **facts)
            self.unseen_, self.label_noise_ = None, 0.0
        return self

    def _scores(self, texts: Iterable[str]) -> Float:
        self._check_fitted()
        listed = check_texts("predict", texts)
        model = self.vocabulary_, self._theta, self.counts
        done = ordered_map(lambda some: predicted(some, *model), blocks(listed), self._threads)
        return np.concatenate(done, axis=1) if done else np.zeros((len(self.intercept_), 0))

    def explain(self, text: str, rival: Any = None) -> Explanation:
        """Why this text gets its label, with what is proved of it.

        Contributions are shown for the label against a `rival`: by default the class that the flip set leads to.
        """
        self._check_fitted()
        if not isinstance(text, str):
            raise refusal("explain", "text", "be one string", text, text_advice(text))
        e = self._explain([text])[0]
        return e if rival is None else e.against(rival)

    def explain_many(self, texts: Iterable[str], rival: Any = None) -> Iterator[Explanation]:
        """`explain` of one text after the other, in order, as they are asked for; faster, since some are read together.

        Texts may come from a generator that never ends: no more than a few dozen are held. Texts that get the label
        `rival` themselves have their own rival.
        """
        self._check_fitted()
        if rival is not None and rival not in self.classes_.tolist():
            raise refusal("explain_many", "rival", f"be one of the classes {self.classes_.tolist()}", rival)
        values = one_column("explain_many", "texts", texts)
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise refusal("explain_many", "texts", "be an iterable of strings", texts, "put the one text in a list")
        found = chain.from_iterable(map(self._explain, read_together(values)))
        return found if rival is None else (e if e.label == rival else e.against(rival) for e in found)

    def _explain(self, texts: list[str]) -> list[Explanation]:
        return explain_texts(
            texts, self.vocabulary_, self._theta, self.classes_.tolist(), self.counts, self.label_noise_
        )

    def _check_fitted(self) -> None:
        if not hasattr(self, "_exact"):
            check_is_fitted(self)  # slow, so only to refuse in scikit-learn's own words

    def key_tokens(self, n: int = 20) -> KeyTokens:
        """For each class the n tokens that speak most for it, by mean contribution over the training documents."""
        from ..explain.text import KeyToken, KeyTokens

        check_is_fitted(self)
        check_number("key_tokens", "n", n, 0, whole=True)
        theta, classes = self._theta, self.classes_.tolist()
        values = theta.B + theta.c[:, None]
        if len(values) == 1:
            values = np.concatenate([-values, values])
        names, counts = self.vocabulary_.tokens, self.class_counts_
        found = KeyTokens()
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

    def to_frame(self) -> Any:
        """The vocabulary as a table of pandas: for each token its attention logit, and for each class value and texts.

        Of two classes there is one value: above 0 it speaks for the second one.
        """
        from ..explain.record import frame

        check_is_fitted(self)
        classes, theta = self.classes_.tolist(), self._theta
        columns = {"token": self.vocabulary_.tokens, "attention": theta.a, "mean_attention": self.mean_attention_}
        columns |= {f"value of {label}": B for label, B in zip(classes[-len(theta.B) :], theta.B, strict=True)}
        columns |= {f"texts of {label}": n for label, n in zip(classes, self.class_counts_, strict=True)}
        return frame(columns)

    def pruned(self, max_tokens: int) -> KeyTokenClassifier:
        """The same model with fewer tokens: those with the largest mean contribution, of either sign, are kept.

        The others are then words that the model does not know; what is kept has the numbers it had.
        """
        from .compression import TokenModel, most_decisive

        check_is_fitted(self)
        check_number("pruned", "max_tokens", max_tokens, 1, whole=True)
        whole = self.token_model()
        kept = np.sort(most_decisive(replace(whole, theta=self._theta))[:max_tokens])
        names, theta = self.vocabulary_.tokens, whole.theta
        small = TokenModel(
            Vocabulary.from_tokens([names[s] for s in kept.tolist()]),
            replace(theta, a=theta.a[kept], B=theta.B[:, kept]),
            whole.mean_attention[kept],
            whole.class_counts[:, kept],
        )
        return self._with(small, self._exact.on_grid)

    def compressed(self, max_bytes: int) -> KeyTokenClassifier:
        """A model that takes at most `max_bytes` on disk: numbers on a coarse grid and, if need be, fewer tokens.

        It is a model of its own: what it stores is what it predicts, explains and proves with, to the bit. With all
        tokens its scores differ from the present ones by about 0.02; those that go say least (see `compression`).
        """
        from .compression import largest_within
        from .saving import size_on_disk

        check_is_fitted(self)
        check_number("compressed", "max_bytes", max_bytes, 1, whole=True)
        kept = self.unseen_
        if kept is not None:
            kept = kept.at_most(int(max_bytes) // (4 if len(kept) else 20))
        for unseen in (kept, None) if kept is not None else (None,):  # beside one token there may be no room for more

            def small(tokens: int, unseen: Unseen | None = unseen) -> KeyTokenClassifier:
                made = self.shrunk(tokens)
                made.unseen_ = unseen
                return made

            model, size = largest_within(small, size_on_disk, int(max_bytes), len(self.vocabulary_))
            if size <= max_bytes:
                return model
        raise refusal("compressed", "max_bytes", f"be at least {size}, to hold one token", max_bytes)

    def shrunk(self, tokens: int) -> KeyTokenClassifier:
        """The model with at most so many tokens, those that say most, and numbers on a coarse grid."""
        from .compression import shrink

        return self._with(shrink(replace(self.token_model(), theta=self._theta), tokens))

    def token_model(self) -> TokenModel:
        """The model as `compression` sees it, with the parameters as they were trained or rounded."""
        from .compression import TokenModel

        check_is_fitted(self)
        return TokenModel(self.vocabulary_, self._present(), self.mean_attention_, self.class_counts_)

    def _with(self, small: TokenModel, on_grid: bool = True) -> KeyTokenClassifier:
        """The same options and history, other tokens and numbers."""
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
        model._exact = Exact(model._present(), on_grid)
        return model

    def report(
        self,
        path: str | os.PathLike[str],
        texts: Iterable[str],
        labels: Iterable[Any],
        *,
        title: str | None = None,
        max_tokens: int | None = None,
        max_texts: int = 2000,
        max_bytes: int | None = 5_000_000,
    ) -> dict[str, Any]:
        """Write one page with the model alive inside it and its score on these texts; returns the page's numbers.

        Of more than `max_texts` texts those that are wrong, those that are unsure and some drawn by lot go into the
        page, while the score is of all. `max_tokens` prunes the model of the page (see `pruned`). A page that would be
        larger than `max_bytes` takes fewer texts, then a smaller model, and says so; None sets no limit.
        """
        from ..app.explorer.page import write_report  # a door: rendering lives above

        check_is_fitted(self)
        check_number("report", "max_tokens", max_tokens, 1, whole=True, none=True)
        check_number("report", "max_texts", max_texts, 1, whole=True)
        check_number("report", "max_bytes", max_bytes, 300_000, whole=True, none=True)
        listed = check_texts("report", texts)
        truth = check_truth("report", labels, len(listed), self.classes_)
        limits = {"max_texts": max_texts, "max_tokens": max_tokens, "max_bytes": max_bytes}
        return write_report(Path(path), self, listed, truth, title or Path(path).stem, **limits)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a directory, whole or not at all."""
        from .saving import save

        check_is_fitted(self)
        save(self, path)
