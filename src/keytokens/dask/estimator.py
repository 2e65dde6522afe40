"""The estimator for texts on a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import dask.array
import distributed
import numpy as np
from distributed import Future
from sklearn.base import clone

import dask

from ..base.checks import check_texts
from ..base.errors import refusal
from ..estimators.streaming import Batches, Relabel, codes_of
from ..estimators.teachers import PROBABILITIES, SELF, Teacher
from ..estimators.text import KeyTokenClassifier
from ..text.ngrams import build
from ..training.weights import class_weighted, sample_weights
from .cluster import (
    Cluster,
    check_length,
    checked_part,
    coded,
    futures_of,
    is_lazy,
    parts_of,
    put_texts,
    weights_of,
)
from .ngrams import Workers
from .teaching import told_on
from .training import training_set

_PATIENCE = 10.0  # seconds, for a scheduler to answer


class DaskKeyTokenClassifier(KeyTokenClassifier):
    """`KeyTokenClassifier` on a dask cluster: the same options, the same model to the bit.

    Texts and labels are dask bags, series, arrays, lists of delayed parts or of futures; their partitions need not
    agree. Plain lists are sent to the workers. The optimiser runs where `fit` is called; the workers hold the counts.

    Parameters
    ----------
    client : dask.distributed.Client or None
        None: the one that is open when it is needed. It is not saved with the model.
    threads : int or None
        In each worker; None: as many as it has.

    The others are those of `KeyTokenClassifier`; so are the attributes.
    """

    def __init__(self, client: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self.client = client

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted([*KeyTokenClassifier._get_param_names(), "client"])

    def __sklearn_clone__(self) -> DaskKeyTokenClassifier:
        return type(self)(self.client, **self._own_options())

    def _own_options(self) -> dict[str, Any]:
        """Copies of all but the client."""
        options = self.get_params(deep=False)
        return {name: clone(value, safe=False) for name, value in options.items() if name != "client"}

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}

    def fit(
        self,
        texts: Any,
        labels: Any,
        sample_weight: Any = None,
        *,
        unlabeled: Any = None,
        teacher: Any = SELF,
        teacher_weight: float = 1.0,
        teacher_loss: float = 0.0,
    ) -> DaskKeyTokenClassifier:
        """Fit to texts and their labels, one label a text; texts without labels may be a collection too.

        A function that teaches is called on the workers.
        """
        self.check_options()
        guide = Teacher.of(teacher, teacher_weight, teacher_loss).of_batches()
        cluster = Cluster.of(self.client)
        parts, coded_labels = self._parts(cluster, texts), coded(cluster, labels)
        others = [] if unlabeled is None else self._parts(cluster, unlabeled)
        weights = weights_of(cluster, sample_weight)
        return self._fit_parts(cluster, parts, coded_labels, weights, others=others, teacher=guide)

    @staticmethod
    def _parts(cluster: Cluster, texts: Any) -> list[Future]:
        if is_lazy(texts):
            return futures_of(cluster, parts_of("fit", "texts", texts))
        return put_texts(cluster, check_texts("fit", texts))

    def _fit_parts(
        self,
        cluster: Cluster,
        parts: list[Future],
        labels: list[Any],
        sample_weight: Any = None,
        relabel: Relabel | None = None,
        others: Sequence[Future] = (),
        teacher: Teacher | None = None,
    ) -> DaskKeyTokenClassifier:
        if not parts:
            raise refusal("fit", "texts", "hold at least one token within the limits", "no texts at all")
        classes, codes = codes_of("fit", cluster.gather(labels), relabel)
        guide = teacher or Teacher()
        new, told = told_on(cluster, parts, others, guide, classes)
        built = build([*parts, *new], self._limits(), Workers(cluster))
        del parts, new
        n_texts = built.n_texts - len(told)
        check_length(len(codes), n_texts)
        weight = sample_weights("fit", sample_weight, n_texts)
        vocabulary = built.vocabulary
        if not len(vocabulary):
            advice = "lower min_df, raise max_df, or look at the texts"
            raise refusal("fit", "texts", "hold at least one token within the limits", f"{n_texts} texts", advice)
        named = classes[codes] if isinstance(self.class_weight, dict) else codes
        weight = class_weighted(self.class_weight, named, weight).astype(np.float32)
        rest = len(classes), self._threads, self.threads
        data = training_set(cluster, built, self.counts, codes, weight, *rest)
        taught: dict[str, Any] = {"teaching": None, "taught_": None}
        if len(told):
            ones = np.ones(len(told), np.float32)
            documents = training_set(cluster, built, self.counts, told, ones, *rest, begin=n_texts)
            taught = self._teaching(data, documents, guide)
        del built
        self._learn(data, classes, **taught, vocabulary_=vocabulary, dropped_=None)
        return self

    def to_local(self) -> KeyTokenClassifier:
        """The same model without a cluster."""
        model = KeyTokenClassifier(**self._own_options())
        fitted = {name: value for name, value in self.__dict__.items() if name.endswith("_") or name == "_exact"}
        model.__dict__.update(fitted)
        return model

    def decision_function(self, X: Any) -> Any:
        """As `KeyTokenClassifier` has it; of a dask collection, a dask array that is computed when it is asked for."""
        return self._lazily("decision_function", X) if is_lazy(X) else super().decision_function(X)

    def predict_proba(self, X: Any) -> Any:
        """As `KeyTokenClassifier` has it; of a dask collection, a dask array that is computed when it is asked for."""
        return self._lazily("predict_proba", X) if is_lazy(X) else super().predict_proba(X)

    def predict_log_proba(self, X: Any) -> Any:
        """As `KeyTokenClassifier` has it; of a dask collection, a dask array that is computed when it is asked for."""
        return self._lazily("predict_log_proba", X) if is_lazy(X) else super().predict_log_proba(X)

    def predict(self, X: Any) -> Any:
        """As `KeyTokenClassifier` has it; of a dask collection, a dask array that is computed when it is asked for."""
        return self._lazily("predict", X) if is_lazy(X) else super().predict(X)

    def _lazily(self, method: str, texts: Any) -> Any:
        self._check_fitted()
        parts = parts_of(method, "texts", texts)
        sizes = texts.chunks[0] if isinstance(texts, dask.array.Array) else [np.nan] * len(parts)
        example = getattr(self.to_local(), method)([""])
        model = self._within_reach()
        answer = dask.delayed(_answer, pure=False)
        arrays = [
            dask.array.from_delayed(answer(model, method, part, number), (size, *example.shape[1:]), example.dtype)
            for number, (part, size) in enumerate(zip(parts, sizes, strict=True))
        ]
        return dask.array.concatenate(arrays)

    def _within_reach(self) -> Any:
        """The model on a worker, from where the others take it; without a client, inside the graph."""
        local = self.to_local().set_params(threads=1)  # the parts run side by side
        try:
            client = self.client or distributed.default_client()
        except ValueError:
            return dask.delayed(local, pure=False, traverse=False)
        return client.scatter(local, hash=False)

    # What is made of the model is made here ------------------------------------------------------------------------

    def fit_batches(
        self,
        batches: Batches,
        *,
        memory: int | None = None,
        share: float = 1.0,
        folder: str | os.PathLike[str] | None = None,
        resume: bool = False,
        source: str = "",
        relabel: Relabel | None = None,
        unlabeled: Iterable[Any] = (),
        teacher: Any = SELF,
        teacher_weight: float = 1.0,
        teacher_loss: float = 0.0,
    ) -> DaskKeyTokenClassifier:
        """`fit` to batches (texts, labels), which are sent to the workers as they come; so are texts without labels.

        `relabel` turns the distinct labels, once all are known, into those of the model.
        """
        if memory is not None or folder is not None or resume:
            rule = "not be given together with a cluster, whose workers hold everything in memory"
            raise refusal("fit_batches", "memory, folder, resume", rule, (memory, folder, resume))
        self.check_options()
        guide = Teacher.of(teacher, teacher_weight, teacher_loss).of_batches()
        cluster = Cluster.of(self.client)
        labels: list[Any] = []
        parts: list[Future] = []
        for some, own in batches:
            listed = check_texts("fit_batches", some)
            check_length(len(own), len(listed))
            parts += put_texts(cluster, listed)
            labels += coded(cluster, own)
        pairs = guide.kind == PROBABILITIES
        others: list[Future] = []
        told: list[Any] = []
        for one in unlabeled:
            others += put_texts(cluster, check_texts("fit_batches", one[0] if pairs else one))
            told += [one[1]] if pairs else []
        if pairs:
            guide = replace(guide, given=np.concatenate(told or [np.zeros((0, len(labels)))]))
        return self._fit_parts(cluster, parts, labels, None, relabel, others, guide)

    def pruned(self, max_tokens: int) -> KeyTokenClassifier:
        return self.to_local().pruned(max_tokens)

    def compressed(self, max_bytes: int) -> KeyTokenClassifier:
        return self.to_local().compressed(max_bytes)

    def report(self, *given: Any, **options: Any) -> dict[str, Any]:
        return self.to_local().report(*given, **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        self.to_local().save(path)


def _answer(model: KeyTokenClassifier, method: str, part: Any, number: int) -> Any:
    return getattr(model, method)(checked_part(method, part, number))


def fit_on_dask(
    batches: Batches, options: dict[str, Any], address: str, relabel: Relabel | None = None, **unlabeled: Any
) -> KeyTokenClassifier:
    """Fit to batches (texts, labels) with the workers of the scheduler at this address; the model is a local one."""
    try:
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        advice = "start one (dask scheduler), and give its address"
        raise refusal("fit", "--dask", "be the address of a dask scheduler that answers", address, advice) from error
    with client:
        model = DaskKeyTokenClassifier(client).set_params(**options)
        return model.fit_batches(batches, relabel=relabel, **unlabeled).to_local()
