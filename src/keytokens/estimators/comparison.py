"""Where a model is worse than on the whole, and which of two models is better: questions to evaluations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from .evaluation import Evaluation

_DOUBT = 0.05  # the chance that any interval of a list misses its truth, or that of a difference


def slices(found: Evaluation, values: Sequence[Any]) -> list[dict[str, Any]]:
    """The score of each value of a column, the worst first.

    Parameters
    ----------
    found : Evaluation
    values : sequence
        One value for each text that was given.

    Returns
    -------
    list of dict
        value, n, accuracy, interval and `worse`: the whole interval lies below the accuracy of all texts. The
        intervals are as wide as their number asks for: with 95 % none of them misses.
    """
    own = np.array([str(values[row]) for row in found.rows.tolist()], object)
    distinct = sorted(set(own.tolist()))
    shown = []
    for value in distinct:
        part = found.only(found.rows[own == value])
        low, high = part.interval(1 - _DOUBT / len(distinct))
        worse = high < (found.accuracy or 0.0)
        shown.append({"value": value, "n": part.n, "accuracy": part.accuracy, "interval": [low, high], "worse": worse})
    return sorted(shown, key=lambda one: one["accuracy"])


def compare(first: Evaluation, second: Evaluation) -> dict[str, Any]:
    """Two models on the same texts: the difference of their accuracies, paired, and where they say different labels.

    Only texts count that neither of them has seen in its training, if there are such.

    Returns
    -------
    dict
        n, accuracies, difference (first minus second) and its 95 % interval, first_only and second_only (texts that
        only one of them gets right), and disagreements, each with its row among the given texts.
    """
    rows = np.intersect1d(first.rows, second.rows, assume_unique=True)
    a, b = first.only(rows), second.only(rows)
    n, first_only, second_only = len(rows), int((a.right & ~b.right).sum()), int((b.right & ~a.right).sum())
    # half a text is added to each of the four cells: the interval is honest for few texts too
    m, up, down = n + 2, first_only + 0.5, second_only + 0.5
    centre, half = (up - down) / m, float(ndtri(1 - _DOUBT / 2)) * math.sqrt(up + down - (up - down) ** 2 / m) / m
    disagreements = [
        {
            "row": int(rows[i]),
            "given": a.names[a.answers.truth[i]],
            "first": a.names[a.answers.said[i]],
            "second": b.names[b.answers.said[i]],
            "probabilities": [float(a.answers.p[i]), float(b.answers.p[i])],
        }
        for i in range(n)
        if str(a.names[a.answers.said[i]]) != str(b.names[b.answers.said[i]])
    ]
    return {
        "n": n,
        "accuracies": [a.accuracy, b.accuracy],
        "kinds": [first.kind, second.kind],
        "difference": (first_only - second_only) / n if n else None,
        "interval": [max(-1.0, centre - half), min(1.0, centre + half)],
        "first_only": first_only,
        "second_only": second_only,
        "disagreements": disagreements,
    }
