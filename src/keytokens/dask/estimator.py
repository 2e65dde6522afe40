"""The estimator for texts on a cluster."""

from __future__ import annotations

import os
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

    def fit(self, texts: Any, labels: Any, sample_weight: Any = None) -> DaskKeyTokenClassifier:
        """Fit to texts and their labels, one label a text."""
        self.check_options()
        cluster = Cluster.of(self.client)
        if is_lazy(texts):
            parts = futures_of(cluster, parts_of("fit", "texts", texts))
        else:
            parts = put_texts(cluster, check_texts("fit", texts))
        return self._fit_parts(cluster, parts, coded(cluster, labels), weights_of(cluster, sample_weight))

    def _fit_parts(
        self,
        cluster: Cluster,
        parts: list[Future],
        labels: list[Any],
        sample_weight: Any = None,
        relabel: Relabel | None = None,
    ) -> DaskKeyTokenClassifier:
        if not parts:
            raise refusal("fit", "texts", "hold at least one token within the limits", "no texts at all")
        built = build(parts, self._limits(), Workers(cluster))
        del parts
        classes, codes = codes_of("fit", cluster.gather(labels), relabel)
        check_length(len(codes), built.n_texts)
        weight = sample_weights("fit", sample_weight, built.n_texts)
        vocabulary = built.vocabulary
        if not len(vocabulary):
            advice = "lower min_df, raise max_df, or look at the texts"
            raise refusal("fit", "texts", "hold at least one token within the limits", f"{built.n_texts} texts", advice)
        named = classes[codes] if isinstance(self.class_weight, dict) else codes
        weight = class_weighted(self.class_weight, named, weight).astype(np.float32)
        data = training_set(cluster, built, self.counts, codes, weight, len(classes), self._threads, self.threads)
        del built
        self._learn(data, classes, vocabulary_=vocabulary, dropped_=None)
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
    ) -> DaskKeyTokenClassifier:
        """`fit` to batches (texts, labels), which are sent to the workers as they come.

        `relabel` turns the distinct labels, once all are known, into those of the model.
        """
        if memory is not None or folder is not None or resume:
            rule = "not be given together with a cluster, whose workers hold everything in memory"
            raise refusal("fit_batches", "memory, folder, resume", rule, (memory, folder, resume))
        self.check_options()
        cluster = Cluster.of(self.client)
        labels: list[Any] = []
        parts: list[Future] = []
        for some, own in batches:
            listed = check_texts("fit_batches", some)
            check_length(len(own), len(listed))
            parts += put_texts(cluster, listed)
            labels += coded(cluster, own)
        return self._fit_parts(cluster, parts, labels, relabel=relabel)

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
    batches: Batches, options: dict[str, Any], address: str, relabel: Relabel | None = None
) -> KeyTokenClassifier:
    """Fit to batches (texts, labels) with the workers of the scheduler at this address; the model is a local one."""
    try:
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        advice = "start one (dask scheduler), and give its address"
        raise refusal("fit", "--dask", "be the address of a dask scheduler that answers", address, advice) from error
    with client:
        return DaskKeyTokenClassifier(client).set_params(**options).fit_batches(batches, relabel=relabel).to_local()
