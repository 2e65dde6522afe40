"""Texts without labels on a cluster: which of them are new, and what their teacher says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from ..estimators.teachers import PROBABILITIES, Distinct, Teacher, names_of
from .cluster import Cluster, Sealed, checked_part


def told_on(
    cluster: Cluster, labelled: Sequence[Future], others: Sequence[Future], teacher: Teacher, classes: NDArray[Any]
) -> tuple[list[Future], NDArray[Any]]:
    """The new ones among the other texts, part by part, and what is said of them.

    The workers send the hashes of the texts, and ask a teacher that is a function.
    """
    if not others:
        return [], np.zeros(0, np.intp)
    distinct = Distinct()
    for hashes in cluster.gather(cluster.run_each(_names, labelled)):
        distinct.new(hashes)
    hashes = cluster.gather(cluster.run_each(_names, others))
    new = [distinct.new(own) for own in hashes]
    chosen = cluster.run_each(_chosen, list(zip(others, new, strict=True)))
    if teacher.kind == PROBABILITIES:
        rows = np.concatenate([own + at for own, at in zip(new, _begins(hashes), strict=True)])
        return chosen, teacher.told(range(sum(map(len, hashes))), classes)[rows]
    return chosen, np.concatenate(cluster.gather(cluster.run_each(_told, chosen, teacher, classes)))


def _begins(parts: Sequence[Any]) -> NDArray[np.intp]:
    sizes = np.array([len(part) for part in parts])
    return np.asarray(np.cumsum(sizes) - sizes, np.intp)


# On the workers ------------------------------------------------------------------------------------------------------


def _names(part: Any) -> Any:
    return names_of(checked_part("fit", part.content, 0))


def _chosen(part: tuple[Sealed, NDArray[np.intp]]) -> Sealed:
    whole, rows = part
    listed = checked_part("fit", whole.content, 0)
    return Sealed([listed[row] for row in rows.tolist()])


def _told(part: Sealed, teacher: Teacher, classes: NDArray[Any]) -> NDArray[Any]:
    return teacher.told(part.content, classes)
