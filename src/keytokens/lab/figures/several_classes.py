"""Four classes of news: what one step makes of the embeddings, and which words attention selects for each class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...io.corpora import from_folder
from ...model.ragged import Index, Vector
from ..problems.embeddings import Classes, multiclass_gradient
from .figure import OURS, Check, Sheet, Table, Tables, figure, table
from .look import GREY, STYLES, Axes
from .real_texts import by_adam, counted, sampled, spearman
from .tables import last, records, where

NAMES = ("World", "Sports", "Business", "Sci/Tech")
DIM, EPOCHS, FREQUENT, NAMED = 64, 5, 50, 4


def _stepped(data: Classes, E: Vector, p: Vector, v: Vector) -> dict[str, Vector]:
    """Every token under every class: alpha_sk, and what one step adds to its value, less the mean over classes."""
    moved = -multiclass_gradient(data, E, p, v)[0] @ v.T
    shares = sparse.diags(1 / data.counts.sum(axis=1).A1) @ data.counts
    balanced = np.eye(data.K)[data.y] / np.bincount(data.y)[data.y, None]
    by_class = shares.T @ balanced
    return {
        "moved": moved - moved.mean(axis=1, keepdims=True),
        "alpha": shares.T @ (np.eye(data.K)[data.y] - 1 / data.K) / len(data.y),
        "posterior": by_class / by_class.sum(axis=1, keepdims=True),
    }


def _trained(rng: np.random.Generator, data: Classes, E: Vector, p: Vector, v: Vector) -> tuple[Vector, Vector]:
    """E and p, v fixed."""

    def gradient(batch: Index, E: Vector, p: Vector) -> Sequence[Any]:
        some = Classes(data.counts[batch], data.y[batch], data.K, data.important[batch])
        dE, found = multiclass_gradient(some, E, p, v)
        return dE, E.T @ found.a

    return by_adam(rng, E, p, len(data.y), gradient, EPOCHS)


def compute_classes(small: bool) -> Tables:
    some = sampled(*from_folder("ag_news"), 5_000 if small else 10_000)
    counts, y, words = counted(*some, 2_000 if small else 5_000)
    data = Classes(counts, y.astype(np.intp), len(NAMES), np.zeros(len(y), np.intp))
    rng, V, K = np.random.default_rng(0), data.counts.shape[1], data.K
    E, p = rng.normal(size=(V, DIM)) / np.sqrt(DIM), rng.normal(size=DIM) / np.sqrt(DIM)
    v = np.linalg.qr(rng.normal(size=(DIM, K)))[0].T
    step = _stepped(data, E, p, v)
    E, p = _trained(rng, data, E, p, v)
    frequent = np.asarray(data.counts.sum(axis=0)).ravel() >= FREQUENT
    logits, best = E @ p, step["posterior"].argmax(axis=1)
    C = data.counts
    heaviest = [logits[C.indices[i:j]].argmax() + i for i, j in zip(C.indptr[:-1], C.indptr[1:], strict=True)]
    chosen = C.indices[heaviest]
    Q = np.exp(logits[C.indices] + np.log(C.data))
    Q = sparse.csr_matrix((Q, C.indices, C.indptr), C.shape)
    f = (sparse.diags(1 / Q.sum(axis=1).A1) @ Q) @ (E @ v.T)
    top = step["posterior"].max(axis=1)[frequent]
    step_of = {name: step[name][frequent].ravel() for name in ("alpha", "moved")}
    slope = np.polyfit(step_of["alpha"], step_of["moved"], 1)[0]
    numbers = {
        "documents": len(data.y),
        "slope": float(slope),
        "correlation": float(np.corrcoef(step_of["alpha"], step_of["moved"])[0, 1]),
        "logit_top": spearman(logits[frequent], top),
        "least_of_a_class": min(
            spearman(logits[frequent & (best == k)], step["posterior"][frequent & (best == k), k]) for k in range(K)
        ),
        "own": float(np.mean(best[chosen] == data.y)),
        "accuracy": float(np.mean(f.argmax(axis=1) == data.y)),
    }
    return {
        "step": table(cls=np.tile(np.arange(K), int(frequent.sum())), **step_of),
        "tokens": table(token=words[frequent], cls=best[frequent], posterior=top, logit=logits[frequent]),
        "selected": _selected(words, chosen, data.y),
        "numbers": table(**numbers),
    }


def _selected(words: NDArray[Any], chosen: NDArray[Any], y: Index) -> Table:
    """For each class the words that most often have the largest attention of a document."""
    rows = []
    for k, name in enumerate(NAMES):
        tokens, times = np.unique(chosen[y == k], return_counts=True)
        for place in np.argsort(-times, kind="stable")[:10]:
            rows.append({"cls": name, "word": words[tokens[place]], "share": times[place] / (y == k).sum()})
    return records(rows)


def checks_classes(tables: Tables) -> list[Check]:
    numbers = last(tables["numbers"])
    note = "The step is from a random p and E of dimension 64: te.multiclass-step bounds how far it is from 1."
    return [
        Check("slope of one step on alpha, all classes", numbers["slope"], 1.0, 0.1, OURS, note),
        Check.at_least("correlation of one step with alpha", numbers["correlation"], 0.95, OURS),
        Check.at_least("Spearman of the logit and the largest posterior", numbers["logit_top"], 0.6, OURS),
        Check.at_least("the same within the class where it is least", numbers["least_of_a_class"], 0.5, OURS),
        Check.at_least("documents whose heaviest word is of their class", numbers["own"], 0.8, OURS),
        Check.at_least("accuracy on the training texts", numbers["accuracy"], 0.85, OURS),
    ]


@figure("classes", "Four classes: one arm of attention for each", compute_classes, checks_classes, sheet=Sheet(2, 3.6))
def draw_classes(tables: Tables, left: Axes, right: Axes) -> None:
    """AG News, words that occur at least 50 times. Left: what one gradient step adds to the value of a word for a
    class, less the mean over classes, against alpha, how much more often it occurs under that class than its share;
    the line has the slope 1. Right: after training by Adam (v fixed, dimension 64), the attention logit against
    the posterior of the word's own class: attention rises with it in every class. With two classes the arms are
    those of the U shape. Names: the four largest logits of each class. Data, model and settings are ours.
    """
    step, tokens, K = tables["step"], tables["tokens"], len(NAMES)
    top, low = tokens["logit"].max(), np.quantile(tokens["logit"], 0.002)
    for k, (name, style) in enumerate(zip(NAMES, STYLES, strict=False)):
        one, own = where(step, cls=k), where(tokens, cls=k)
        look: Any = {"linestyle": "", "marker": style.marker, "color": style.color, "markersize": 3, "alpha": 0.6}
        left.plot(one["alpha"], one["moved"], label=name, **look)
        right.plot(k + 0.85 * (own["posterior"] - 1 / K) / (1 - 1 / K), own["logit"], **look)
        strongest = own["token"][np.argsort(-own["logit"], kind="stable")[:NAMED]]
        right.text(k + 0.42, top + 1, "\n".join(strongest), ha="center", va="bottom", fontsize=7)
    ends = np.array([step["alpha"].min(), step["alpha"].max()])
    left.plot(ends, ends, color=GREY, linewidth=1, label="slope 1")
    left.set(xlabel="α of a word and a class", ylabel="what one step adds to the value")
    left.legend(loc="upper left")
    right.set(xlabel="posterior of the word's own class, from 1/4 to 1", ylabel="attention logit p·E")
    right.set(ylim=(low - 1, top + 1 + 0.3 * (top - low)))
    right.set_xticks(np.arange(K) + 0.42, NAMES)
