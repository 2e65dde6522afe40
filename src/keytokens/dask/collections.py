"""What users give: dask bags, series, frames of one column, arrays, delayed parts or futures; or plain lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.base import is_dask_collection
from dask.delayed import Delayed
from dask.sizeof import sizeof
from distributed import Future
from numpy.typing import NDArray

from ..core.counts import Float
from ..errors import refusal
from ..text.pieces import grouped
from ..validate import Seen, check_labels, check_texts, one_column
from .cluster import Cluster

__all__ = [
    "Coded",
    "Relabel",
    "Sealed",
    "check_length",
    "checked_part",
    "code",
    "coded",
    "codes_of",
    "futures_of",
    "is_lazy",
    "parts_of",
    "put_texts",
    "weights_of",
]

Relabel = Callable[[list[Any]], list[Any]]


def is_lazy(given: Any) -> bool:
    """Whether this is a collection of dask's, or a list of its parts."""
    return is_dask_collection(given) or (
        isinstance(given, (list, tuple)) and bool(given) and all(isinstance(part, (Delayed, Future)) for part in given)
    )


def parts_of(owner: str, name: str, given: Any) -> list[Any]:
    """The partitions of a collection, in order."""
    if isinstance(given, Delayed):  # which claims to have any attribute
        return [given]
    if isinstance(given, (list, tuple)):
        return list(given)
    if hasattr(given, "columns") and getattr(given, "ndim", 1) == 2:
        if len(given.columns) != 1:
            rule = "be a series, or a frame of one column"
            raise refusal(owner, name, rule, list(given.columns), "choose one: frame['text']")
        given = given[given.columns[0]]
    elif getattr(given, "ndim", 1) != 1:
        raise refusal(owner, name, "be an array of one dimension", given)
    parts = given.to_delayed()
    return list(parts.ravel()) if isinstance(parts, np.ndarray) else list(parts)


@dataclass(frozen=True, eq=False)
class Sealed:
    """A partition that goes from worker to worker in one message: dask sends a list of strings one by one."""

    content: Any


sizeof.register(Sealed, lambda part: int(sizeof(part.content)))


def futures_of(cluster: Cluster, parts: list[Any]) -> list[Future]:
    """Each part, sealed, on the worker that will need it, as results that can be computed again."""
    n_workers, found = len(cluster.workers), []
    for number, worker in enumerate(cluster.workers):
        own = parts[number * len(parts) // n_workers : (number + 1) * len(parts) // n_workers]
        found += cluster.client.compute(own, workers=[worker], allow_other_workers=True)
    # where they are: an idle worker may have taken some from a busy one
    return [cluster.client.submit(Sealed, part, pure=False) for part in found]


def put_texts(cluster: Cluster, texts: Iterable[str]) -> list[Future]:
    """Texts of this process as parts on the cluster.

    They go as arguments of tasks, not as bare data: the scheduler can send them again if a worker is lost. Small parts,
    because it warns of large ones.
    """
    return [cluster.client.submit(Sealed, piece, pure=False) for piece in grouped(texts)]


def checked_part(owner: str, part: Any, number: int) -> list[str]:
    """The texts of one partition; a refusal names it."""
    return check_texts(f"{owner}, partition {number}", part)


@dataclass(frozen=True, eq=False)
class Coded:
    """Labels in numbers: those that occur, and which of them each text has."""

    distinct: list[Any]
    codes: NDArray[np.unsignedinteger[Any]]


def code(labels: Any) -> Coded:
    """
    >>> found = code(["b", "a", "b"])
    >>> found.distinct, found.codes.tolist()
    (['b', 'a'], [0, 1, 0])
    >>> code([1, True]).distinct
    [1, True]
    """
    listed = list(one_column("fit", "labels", labels))
    try:
        if len(set(map(type, listed))) <= 1:
            known, keys = dict.fromkeys(listed), listed
        else:  # 1 and True are equal, but not the same
            keys = [(type(label), label) for label in listed]
            known = dict.fromkeys(keys)
    except TypeError:
        raise refusal("fit", "labels", "be strings, integers or booleans, all of one kind", listed) from None
    number = {key: at for at, key in enumerate(known)}
    codes = np.fromiter(map(number.__getitem__, keys), np.min_scalar_type(len(known)), len(keys))
    return Coded([key if keys is listed else key[1] for key in known], codes)


def _code(labels: Sealed) -> Coded:
    return code(labels.content)


def coded(cluster: Cluster, labels: Any) -> list[Any]:
    """Labels in numbers, part by part, here or on the workers."""
    if is_lazy(labels):
        return cluster.run_each(_code, futures_of(cluster, parts_of("fit", "labels", labels)))
    if isinstance(labels, (str, bytes)):
        raise refusal("fit", "labels", "be a list, one label a text", labels)
    return [code(labels)]


def codes_of(coded: list[Coded], relabel: Relabel | None = None) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The classes, sorted, and the class of every text."""
    distinct = [label for part in coded for label in part.distinct]
    distinct = distinct if relabel is None else relabel(distinct)
    classes, place = np.unique(check_labels("fit", distinct, len(distinct)), return_inverse=True)
    codes, first = [], 0
    for part in coded:
        codes.append(place[first : first + len(part.distinct)][part.codes])
        first += len(part.distinct)
    return classes, np.concatenate(codes).astype(np.intp)


def check_length(n_labels: int, n_texts: int) -> None:
    if n_labels != n_texts:
        seen = Seen(f"{n_labels} labels")
        raise refusal("fit", "labels", f"have one entry for each of the {n_texts} texts", seen)


def weights_of(cluster: Cluster, given: Any) -> Float | None:
    """The weights of all texts, if there are any."""
    if not is_lazy(given):
        return given
    parts = cluster.gather(futures_of(cluster, parts_of("fit", "sample_weight", given)))
    return np.concatenate([np.asarray(part.content, np.float64) for part in parts])
