"""How faithful are explanations, and do they mark what people mark? `python -m benchmarks.faithfulness`.

One keytokens model learns from the training part of the movie rationales (ERASER); its predictions on the validation
part are explained by several methods. Every method scores the same items, the words of the text as the data set splits
it, and removing an item always means the same: it becomes `keytokens.MASK`. Items that the model does not see, most of
the punctuation, are left out for everybody, in the human rationales too.

contributions   the sum of the contributions of all n-grams that touch an item
gradients       integrated gradients of f in the counts, 50 steps from the empty text; items as above
lime            5,000 samples, every item of the text a feature of its own
shap            the partition explainer, at most two evaluations an item
random          a random order
sufficient      no scores but a set: the fewest words that fix the label

LIME and SHAP take seconds a text, so they explain a sample. `results/faithfulness.csv` has a line for each method and
text, and the tables of docs/faithfulness.md are made from these lines.
"""

import csv
import functools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from scipy.special import expit
from sklearn.metrics import average_precision_score

from benchmarks.datasets import folder
from benchmarks.measure import RESULTS, THREADS, installed, options_of, table, write_csv
from keytokens import MASK, Explanation, KeyTokenClassifier
from keytokens.text.words import spans

FILE = "movie_rationales.parquet"
PAGE = Path(__file__).parents[1] / "docs" / "faithfulness.md"
SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)  # of the items, as ERASER has them
SAMPLE = 40  # texts for LIME and SHAP
LIBRARIES = {"contributions": "keytokens", "gradients": "keytokens", "lime": "lime", "shap": "shap", "random": "numpy"}
SLOW = ("lime", "shap")
SET = "sufficient"
NAMES = {
    "contributions": "keytokens, contributions",
    SET: "keytokens, sufficient set",
    "gradients": "integrated gradients",
    "lime": "LIME",
    "shap": "SHAP (partition)",
    "random": "random order",
}
RANKED = ("comprehensiveness", "sufficiency", "f1", "iou_f1", "auprc")
AT_SIZE = ("size_share", "size_comprehensiveness", "size_sufficiency", "size_kept", "size_attacked", "size_f1")

Array = np.ndarray
Probability = Callable[[Array], Array]  # from what is kept, (m, n) booleans, to m probabilities of the explained label


# The measures --------------------------------------------------------------------------------------------------------


def items_at(share: float, items: int) -> int:
    """So many items are this share of them, rounded up.

    >>> [items_at(share, 60) for share in SHARES]
    [1, 3, 6, 12, 30]
    """
    return math.ceil(share * items)


def top(scores: Array, k: int) -> Array:
    """The k items with the largest scores, as booleans; of equal ones the first.

    >>> top(np.array([1.0, 3.0, 3.0, 3.0]), 2).tolist()
    [False, True, True, False]
    """
    chosen = np.zeros(len(scores), bool)
    chosen[np.argsort(-scores, kind="stable")[:k]] = True
    return chosen


def drops(probability: Probability, chosen: Array) -> tuple[Array, Array]:
    """For each choice (m, n): how much the probability falls without the chosen items, and with them alone."""
    m, n = chosen.shape
    found = probability(np.concatenate([np.ones((1, n), bool), ~chosen, chosen]))
    return found[0] - found[1 : m + 1], found[0] - found[m + 1 :]


def f1(chosen: Array, human: Array) -> float:
    """Of items, 2 |both| / (|chosen| + |human|).

    >>> f1(np.array([True, True, False, False]), np.array([True, False, True, True]))
    0.4
    """
    return 2 * float((chosen & human).sum()) / float(chosen.sum() + human.sum())


def runs_of(mask: Array) -> list[tuple[int, int]]:
    """First and last + 1 of every maximal run.

    >>> runs_of(np.array([True, True, False, True]))
    [(0, 2), (3, 4)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(int), [0]])))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def iou_f1(chosen: Array, human: Array) -> float:
    """Of runs: one is found if a run of the other side shares at least half of what the two cover together."""
    own, theirs = runs_of(chosen), runs_of(human)

    def match(a: tuple[int, int], b: tuple[int, int]) -> bool:
        both = min(a[1], b[1]) - max(a[0], b[0])
        return both > 0 and 2 * both >= max(a[1], b[1]) - min(a[0], b[0])

    right = sum(any(match(a, b) for b in theirs) for a in own)
    found = sum(any(match(a, b) for a in own) for b in theirs)
    precision, recall = right / max(len(own), 1), found / max(len(theirs), 1)
    return 2 * precision * recall / (precision + recall) if right else 0.0


def ranked_measures(scores: Array, human: Array, probability: Probability) -> dict[str, float]:
    """What a ranking of the items is worth: drops over all shares, and people at the length of their rationale."""
    without, alone = drops(probability, np.array([top(scores, items_at(share, len(scores))) for share in SHARES]))
    chosen = top(scores, int(human.sum()))
    auprc = float(average_precision_score(human, scores))
    found = (float(without.mean()), float(alone.mean()), f1(chosen, human), iou_f1(chosen, human), auprc)
    return dict(zip(RANKED, found, strict=True))


def set_measures(chosen: Array, human: Array, probability: Probability, against: Array) -> dict[str, float]:
    """What one set of items is worth, and whether the label is still the likelier of the two in two cases.

    "kept": with the set alone. "attacked": with the set and with all items that speak `against` the label, so that its
    other supporters are gone; a set that fixes the label stands that, others may or may not.
    """
    without, alone = drops(probability, chosen[None])
    kept, attacked = (probability(np.array([chosen, chosen | against])) >= 0.5).tolist()
    found = (chosen.mean(), without[0], alone[0], kept, attacked, f1(chosen, human))
    return dict(zip(AT_SIZE, map(float, found), strict=True))


# Texts ---------------------------------------------------------------------------------------------------------------


@functools.cache
def has_word(item: str) -> bool:
    """Whether the model sees anything of it."""
    return len(spans(item)) > 0


@dataclass(frozen=True, eq=False)
class Review:
    """One text as items, and what people marked."""

    items: tuple[str, ...]
    human: Array  # (n,) booleans
    label: int

    @classmethod
    def of(cls, text: str, marks: str, label: int) -> "Review":
        """`marks` has a 0 or a 1 for each part of the text between white space.

        >>> Review.of("good , good plot .", "01100", 1).items
        ('good', 'good', 'plot')
        """
        pairs = [pair for pair in zip(text.split(), marks, strict=True) if has_word(pair[0])]
        return cls(tuple(item for item, _ in pairs), np.array([mark == "1" for _, mark in pairs]), int(label))

    @property
    def text(self) -> str:
        return " ".join(self.items)

    @functools.cached_property
    def starts(self) -> Array:
        """(n,) where each item begins in the text."""
        return np.concatenate([[0], np.cumsum([len(item) + 1 for item in self.items])])[:-1]

    def at(self, places: Array) -> Array:
        """The item at each place of the text."""
        return np.searchsorted(self.starts, places, side="right") - 1


def reviews(split: str) -> list[Review]:
    from pyarrow import parquet

    rows = parquet.read_table(folder() / FILE).to_pylist()
    found = [Review.of(row["text"], row["rationale_mask"], row["label"]) for row in rows if row["split"] == split]
    return [review for review in found if review.human.any()]


@dataclass(frozen=True, eq=False)
class Masked:
    """A text of which items may be masked: an n-gram is gone if one of its items is, and f is read off the others.

    With raw counts the same as `predict_proba` of the masked text, which a test compares, without reading texts anew.
    """

    first: Array  # (O,) the first item of each occurrence of a token
    last: Array  # (O,) and the last
    weights: Array  # (O,) attention in the whole text
    values: Array  # (O,) b + c
    intercept: float

    @classmethod
    def of(cls, review: Review, explanation: Explanation, model: KeyTokenClassifier) -> "Masked":
        uses = explanation.tokens
        ends = review.at(uses.start), review.at(uses.end - 1)
        return cls(*ends, uses.attention, uses.value, float(model.intercept_[0]))

    @property
    def sink(self) -> float:
        """What is left of the attention."""
        return 1 - float(self.weights.sum())

    def probability(self, kept: Array) -> Array:
        """(m,) of class 1, for items that are kept, (m, n) booleans."""
        gone = np.cumsum(np.pad(~kept, ((0, 0), (1, 0))), axis=1, dtype=np.int32)
        alive = gone[:, self.last + 1] == gone[:, self.first]
        above = alive @ (self.weights * self.values) + self.sink * self.intercept
        return expit(above / (alive @ self.weights + self.sink))

    def of_texts(self, texts: Sequence[str]) -> Array:
        """(m,) of class 1, for texts as explainers mask them."""
        parts = [text.replace(MASK, f" {MASK} ").split() for text in texts]
        return self.probability(np.array([[part != MASK for part in row] for row in parts]))


# The methods: from a text and its explanation to one score an item, for class 1 ---------------------------------------


def touching(masked: Masked, of_each: Array, items: int) -> Array:
    """For every item the sum over the occurrences of tokens that touch it: what masking it takes away."""
    total = np.zeros(items)
    for offset in range(int((masked.last - masked.first).max(initial=-1)) + 1):
        inside = masked.first + offset <= masked.last
        total += np.bincount(masked.first[inside] + offset, of_each[inside], items)
    return total


def integrated_gradients(w: Array, b: Array, sink: float, steps: int = 50) -> Array:
    """Of f(t) = t sum(w b) / (t sum(w) + sink), t from 0 to 1 by the midpoint rule: the share of each occurrence.

    Their sum is f(1) up to the error of the rule.

    >>> shares = integrated_gradients(np.array([1.0, 1.0]), np.array([3.0, -1.0]), 2.0)
    >>> round(float(shares.sum()), 4)
    0.5
    """
    t = (np.arange(steps) + 0.5)[:, None] / steps
    below = t * w.sum() + sink
    return np.mean((w * b * below - w * (t * (w @ b))) / below**2, axis=0)


def lime_scores(review: Review, masked: Masked) -> Array:
    from lime.lime_text import LimeTextExplainer

    def probabilities(texts: Sequence[str]) -> Array:
        of_one = masked.of_texts(texts)
        return np.column_stack([1 - of_one, of_one])

    options = {"bow": False, "mask_string": MASK, "feature_selection": "none", "random_state": 0}
    lime = LimeTextExplainer(split_expression=r"\s+", **options)
    found = lime.explain_instance(review.text, probabilities, num_features=len(review.items), num_samples=5000)
    scores = np.zeros(len(review.items))
    for item, weight in found.as_map()[1]:
        scores[item] = weight
    return scores


def shap_scores(review: Review, masked: Masked) -> Array:
    import shap

    masker = shap.maskers.Text(r"\s+", mask_token=MASK, collapse_mask_token=False)
    explain = shap.Explainer(masked.of_texts, masker, seed=0)
    return explain([review.text], max_evals=2 * len(review.items), batch_size=256, silent=True).values[0]


def scores_of(name: str, number: int, review: Review, masked: Masked) -> Array:
    items = len(review.items)
    if name == "contributions":
        return touching(masked, masked.weights * masked.values, items)
    if name == "gradients":
        values = masked.values - masked.intercept
        return touching(masked, integrated_gradients(masked.weights, values, masked.sink), items)
    if name == "random":
        return np.random.default_rng(number).permutation(items).astype(float)
    return lime_scores(review, masked) if name == "lime" else shap_scores(review, masked)


def sufficient_items(review: Review, explanation: Explanation) -> Array:
    """The items that hold a word of the set."""
    chosen = np.zeros(len(review.items), bool)
    chosen[review.at(np.array([item.start for item in explanation.sufficient_words], int))] = True
    return chosen


# One text, all texts -------------------------------------------------------------------------------------------------


def measured(number: int, review: Review, model: KeyTokenClassifier, names: Sequence[str]) -> list[dict[str, object]]:
    """A line for the sufficient set, and one for each method: as a ranking, and at the size of that set."""
    explanation = model.explain(review.text)
    winner = model.classes_.tolist().index(explanation.label)
    masked = Masked.of(review, explanation, model)

    def probability(kept: Array) -> Array:
        return masked.probability(kept) if winner else 1 - masked.probability(kept)

    place = {"text": number, "items": len(review.items), "right": int(explanation.label == review.label)}
    own, sign = sufficient_items(review, explanation), 1 if winner else -1
    against = sign * scores_of("contributions", number, review, masked) < 0
    lines = [{"method": SET, **place, **set_measures(own, review.human, probability, against)}]
    for name in names:
        scores = sign * scores_of(name, number, review, masked)
        at_size = set_measures(top(scores, int(own.sum())), review.human, probability, against)
        lines.append({"method": name, **place, **ranked_measures(scores, review.human, probability), **at_size})
    return lines


_shared: dict[str, object] = {}  # what a worker process got when it began


def _begin(model: KeyTokenClassifier, texts: Sequence[Review]) -> None:
    _shared.update(model=model, texts=texts)


def _job(number: int, names: Sequence[str]) -> list[dict[str, object]]:
    return measured(number, _shared["texts"][number], _shared["model"], names)


def measure_all(
    model: KeyTokenClassifier, texts: Sequence[Review], names: Sequence[str], sample: int, workers: int = THREADS
) -> list[dict[str, object]]:
    """All texts, `sample` of them, evenly spaced, with the slow methods too; the lines in the order of the texts."""
    chosen = set(np.linspace(0, len(texts) - 1, min(sample, len(texts))).astype(int).tolist())
    quick = [name for name in names if name not in SLOW]
    asked = [list(names) if number in chosen else quick for number in range(len(texts))]
    with ProcessPoolExecutor(workers, get_context("spawn"), _begin, (model, texts)) as pool:
        found = [line for lines in pool.map(_job, range(len(texts)), asked) for line in lines]
    return [{**line, "sampled": int(line["text"] in chosen)} for line in found]


# Tables --------------------------------------------------------------------------------------------------------------


def mean_and_error(values: Iterable[float], form: str = ".3f") -> str:
    """The mean, and its standard error over texts.

    >>> mean_and_error([1.0, 2.0, 3.0], ".2f")
    '2.00 ± 0.58'
    """
    known = np.array(list(values))
    return f"{known.mean():{form}} ± {known.std(ddof=1) / math.sqrt(len(known)):{form.removeprefix('+')}}"


def drawn(lines: Sequence[Mapping[str, str]], columns: Sequence[str], names: Iterable[str], less: str = "") -> str:
    """A row for each method that has lines: its means, or those of its differences from the method `less`."""
    found = {name: {line["text"]: line for line in lines if line["method"] == name} for name in NAMES}
    base = found.get(less, {})

    def differences(name: str, column: str) -> list[float]:
        return [float(line[column]) - (float(base[text][column]) if less else 0) for text, line in found[name].items()]

    form = "+.3f" if less else ".3f"
    rows = [
        [NAMES[name], str(len(found[name])), *(mean_and_error(differences(name, column), form) for column in columns)]
        for name in names
        if found[name]
    ]
    return table(["", "texts", *(column.removeprefix("size_").replace("_", " ") for column in columns)], rows)


def tables(lines: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """By name: all methods on the sample, also less ours; the fast ones on all texts; all at the size of our set."""
    sampled = [line for line in lines if int(line["sampled"])]
    ranked = [name for name in NAMES if name != SET]
    return {
        "sample": drawn(sampled, RANKED, ranked),
        "paired": drawn(sampled, RANKED, ranked[1:], ranked[0]),
        "all": drawn(lines, RANKED, [name for name in ranked if name not in SLOW]),
        "size": drawn(sampled, AT_SIZE, NAMES),
    }


def with_tables(page: str, drawings: Mapping[str, str]) -> str:
    """The page with each table between its two comments replaced."""
    for name, drawing in drawings.items():
        between = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end -->)", re.S)
        page = between.sub(lambda _, drawing=drawing: drawing + "\n", page, count=1)
    return page


def read_lines(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options_of(__doc__)
    parser.add_argument("--sample", type=int, default=SAMPLE, help="texts for LIME and SHAP")
    parser.add_argument("--texts", type=int, help="explain only the first so many")
    parser.add_argument("--page", type=Path, help="the page whose tables to replace, docs/faithfulness.md by default")
    options = parser.parse_args(arguments)
    names = installed(LIBRARIES)
    known, unseen = reviews("train"), reviews("val")[: options.texts]
    model = KeyTokenClassifier(threads=1).fit([one.text for one in known], [one.label for one in known])
    lines = measure_all(model, unseen, names, options.sample)
    rounded = [{k: f"{v:.5f}" if isinstance(v, float) else v for k, v in line.items()} for line in lines]
    target = options.output / "faithfulness.csv"
    write_csv(target, rounded)
    drawings = tables(read_lines(target))
    page = options.page or (PAGE if options.output == RESULTS else None)
    if page is not None:
        page.write_text(with_tables(page.read_text("utf-8"), drawings), "utf-8")
    right = np.mean([line["right"] for line in lines if line["method"] == SET])
    print(f"accuracy on {len(unseen)} texts {right:.3f}", *drawings.values(), sep="\n\n")


if __name__ == "__main__":
    main()
