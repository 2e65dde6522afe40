"""In place of the vision experiment: attention sharpens and its parameters grow while our text model is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.stats import spearmanr

from ...io.corpora import two_classes
from ...model.blocks import blocks_of
from ...model.prior import PriorOptions
from ...model.ragged import Vector
from ...training.fit import TrainingSet, fit_scalars
from .figure import OURS, PAPER, Check, Figure, Rule, Tables, table
from .look import STYLES, sheet
from .real_text import documents_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CAPTION = """\
The paper follows a vision transformer during training: the soft number of attended patches, 1/|s|², falls, and the \
norm of the key-query weights grows. The same two curves for our text model on IMDB, step by step (ours; no sink, \
words only): the soft number of attended words of a review over its length, and the norm of the attention logits."""
WATCHED = 2000  # documents whose attention is followed


def compute(small: bool) -> Tables:
    texts, labels = two_classes("imdb")
    if small:
        texts, labels = texts[:3000], labels[:3000]
    data, _, counts = documents_of(texts, labels, 10_000)
    y = (data.labels > 0).astype(np.intp)
    training = TrainingSet.of(blocks_of(counts.astype(np.float32)), y, np.ones(len(y), np.float32), 2, 2)
    V, watched = data.V, counts[:WATCHED]
    rows: list[tuple[float, float]] = []

    def watch(state: Any) -> None:
        a = state.theta[V : 2 * V].astype(np.float64)
        rows.append((_soft_share(watched, a), float(np.linalg.norm(a))))

    fit_scalars(training, PriorOptions(sink=0.0, attention_penalty=0.5, brevity=0.0), 40, 0.0, watch=watch)
    share, norm = np.array(rows).T
    return {"training": table(step=np.arange(len(rows)), soft_share=share, norm=norm)}


def _soft_share(counts: sparse.csr_matrix, a: Vector) -> float:
    """Mean over documents of 1/(T sum s^2), s the attention of each position: 1 where it is even."""
    weight = sparse.csr_matrix((counts.data * np.exp(a[counts.indices]), counts.indices, counts.indptr), counts.shape)
    square = sparse.csr_matrix(
        (counts.data * np.exp(2 * a[counts.indices]), counts.indices, counts.indptr), counts.shape
    )
    total, squares = weight.sum(axis=1).A1, square.sum(axis=1).A1
    return float(np.mean(total**2 / squares / counts.sum(axis=1).A1))


def draw(tables: Tables) -> Drawing:
    drawing, (left, right) = sheet(2, 3.2)
    rows = tables["training"]
    left.plot(rows["step"], rows["soft_share"], **STYLES[0].all, markevery=4)
    left.set_ylabel("soft number of attended words / length")
    right.plot(rows["step"], rows["norm"], **STYLES[1].all, markevery=4)
    right.set_ylabel("norm of the attention logits |a|")
    for axes in (left, right):
        axes.set_xlabel("step of training")
    return drawing


def checks(tables: Tables) -> list[Check]:
    rows = tables["training"]
    return [
        Check("soft share of attended words at the start", rows["soft_share"][0], 1.0, 0.001, OURS),
        Check("soft share at the end", rows["soft_share"][-1], 0.7, 0, OURS, rule=Rule.AT_MOST),
        Check(
            "Spearman of step and soft share",
            float(spearmanr(rows["step"], rows["soft_share"])[0]),
            -0.9,
            0,
            PAPER,
            rule=Rule.AT_MOST,
        ),
        Check(
            "Spearman of step and norm",
            float(spearmanr(rows["step"], rows["norm"])[0]),
            0.9,
            0,
            PAPER,
            rule=Rule.AT_LEAST,
        ),
    ]


FIGURE = Figure(
    name="training",
    title="Text instead of vision: attention sharpens while it is trained",
    caption=CAPTION,
    compute=compute,
    draw=draw,
    checks=checks,
)
