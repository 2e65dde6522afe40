"""Every refusal of the estimators: what somebody does, and the one line that says who refuses, what and why."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import keytokens as kt

from ..conftest import library
from ..corpus import reviews
from ..messages import check_refused, rows
from .bags.planted import planted

TEXTS, LABELS = reviews(60)
COUNTS = np.array([[2.0, 0, 1], [1, 0, 2], [0, 2, 1], [0, 1, 1]])
BAGS = [np.ones((2, 3)), np.zeros((1, 3)), np.ones((3, 3)), np.zeros((2, 3))]

OF_TEXTS = r"""
fit(ngrams=(2, 1))
    KeyTokenClassifier: `ngrams` must be two whole numbers, 1 <= least <= most; saw (2, 1). For example (1, 2).
fit(ngrams="12")
    KeyTokenClassifier: `ngrams` must be two whole numbers, 1 <= least <= most; saw '12'. For example (1, 2).
fit(counts="tfidf")
    KeyTokenClassifier: `counts` must be one of 'raw', 'log', 'binary'; saw 'tfidf'.
fit(prior={"sink": 0})
    KeyTokenClassifier: `prior` must be a Prior or None; saw {'sink': 0}. For example prior=Prior(sink=0).
fit(prior=kt.Prior)
    KeyTokenClassifier: `prior` must be a Prior or None; saw <class ...>. For example prior=Prior(sink=0).
fit_prior(ratio="much")
    Prior: `ratio` must be a finite number of at least 0; saw 'much'.
fit_prior(sink=-1)
    Prior: `sink` must be a finite number of at least 0; saw -1.
fit_prior(spread=0)
    Prior: `spread` must be a finite number above 0; saw 0.
fit_prior(tol=float("nan"))
    Prior: `tol` must be a finite number above 0; saw nan.
fit_prior(ratio=1e30)
    Prior: `ratio` must be at most 1e+09; saw 1e+30.
fit_prior(spread=1e30)
    Prior: `spread` must be at most 1e+09; saw 1e+30.
fit_prior(sink=1e30)
    Prior: `sink` must be at most 1e+09; saw 1e+30.
fit_prior(attention_penalty=1e30)
    Prior: `attention_penalty` must be at most 1e+09; saw 1e+30.
fit(max_iter=2.5)
    KeyTokenClassifier: `max_iter` must be a whole number of at least 1; saw 2.5.
fit(min_df=0)
    KeyTokenClassifier: `min_df` must be a whole number of at least 1; saw 0.
fit(max_df=2)
    KeyTokenClassifier: `max_df` must be a share of the texts, above 0 and at most 1; saw 2.
fit(max_tokens=0)
    KeyTokenClassifier: `max_tokens` must be a whole number of at least 1 or None; saw 0.
fit(threads=0)
    KeyTokenClassifier: `threads` must be a whole number of at least 1 or None; saw 0.

fit("one text", ["a"])
    fit: `texts` must be a list of strings; saw 'one text'. Put the one text in a list: [text].
fit(["a", None])
fit(column("pandas", ["a", None]))
fit(column("pandas", ["a", None]).astype("string"))
fit(column("polars", ["a", None]))
fit(column("pyarrow", ["a", None]))
    fit: `texts[1]` must be a string; saw .... Drop or fill the missing texts first.
ask(column("pandas", ["a"]).to_frame()[[]])
    predict: `texts` must be one column; saw shape (1, 0). Choose one, as in texts[:, 0].
fit(["...", ""])
fit(["", "", ""], [0, 1, 0])
fit([kt.MASK, kt.MASK * 5, f"{kt.MASK} {kt.MASK}"], [0, 1, 0])
fit([" ", "\n", "\0"], [0, 1, 0])
    fit: `texts` must hold at least one token within the limits; saw '... texts'.
    Lower min_df, raise max_df, or look at the texts.
clf.explain_many("a")
clf.explain_many(5)
    explain_many: `texts` must be an iterable of strings; saw ....
list(clf.explain_many(["a"] * 700 + [None]))
list(clf.explain_many(iter(["a"] * 700 + [None])))
    explain_many: `texts[700]` must be a string; saw None. Drop or fill the missing texts first.
clf.explain(["a"])
    explain: `text` must be one string; saw ['a']. Give the string itself.
ask([b"a great film"])
ask(np.array([b"a great film"]))
ask(column("pyarrow", [b"a great film"]))
ask([bytearray(b"a great film")])
    predict: `texts[0]` must be a string; saw ...b'a great film'.... Decode it first: text.decode("utf-8").
clf.explain(b"a great film")
    explain: `text` must be one string; saw b'a great film'. Decode it first: text.decode("utf-8").

fit(labels=[0])
    fit: `labels` must have one entry for each of the 2 texts; saw 1 labels.
fit(labels=["x", "x"])
    fit: `labels` must have at least two classes; saw only 'x'. Add texts of another class.
fit(labels=[0.5, 1.5])
    fit: `labels` must be strings, integers or booleans, all of one kind;
    saw floats (labels[0] = 0.5). Convert them all with str().
fit(labels=["x", None])
fit(labels=column("pandas", [True, None]).astype("boolean"))
fit(labels=column("pandas", [1.0, np.nan]))
fit(labels=column("polars", [True, None]))
fit(labels=column("pyarrow", [True, None]))
    fit: `labels` must be strings, integers or booleans, all of one kind;
    saw ... (labels[0] = ...), missing values (labels[1] = ...). Drop the rows without a label.
fit(labels=[b"x", b"y"])
fit(labels=np.array([b"x", b"y"]))
    fit: `labels` must be strings, integers or booleans, all of one kind;
    saw bytes (labels[0] = b'x'). Decode them: label.decode("utf-8").
fit_batch(labels=[["x"], ["y"]])
    fit_batches: `labels` must be strings, integers or booleans, all of one kind; saw [['x'], ['y']].
fit_batch(labels="xy")
    fit_batches: `labels` must be a list, one label a text; saw 'xy'.

fit(weight=np.full(2, 0.0))
fit(weight=[1, -1])
    fit: `sample_weight` must be 2 finite numbers, none negative and not all zero; saw ....
fit(weight=np.full(2, 1e-300))
fit(weight=np.full(2, 1e-30))
fit(weight=np.full(2, 1e30))
fit(weight=np.full(2, 1e300))
fit(class_weight={0: 0, 1: 0})
fit(class_weight={0: -1, 1: 1})
fit(class_weight={0: np.nan, 1: 1})
fit(class_weight={0: 1e300, 1: 1})
    KeyTokenClassifier.fit: `sample_weight and class_weight` must be at least 0
    and add up to a number from 1e-18 to 1e+18; saw a sum of ....
fit([f"w{i}" for i in range(100_000)], [f"c{i}" for i in range(100_000)])
    KeyTokenClassifier.fit: `the model` must fit into the ... GB of this machine; saw 100,000 classes, 100,000 tokens,
    100,000 documents, which take ... GB. Merge classes, or keep fewer tokens.
"""

OF_FRAMES = """
ask(frame)
    predict: `texts` must be one column; saw the columns 'text', 'label'. Choose one by its name.
clf.explain_many(frame)
    explain_many: `texts` must be one column; saw the columns 'text', 'label'. Choose one by its name.
clf.report("page.html", frame, LABELS)
    report: `texts` must be one column; saw the columns 'text', 'label'. Choose one by its name.
fit(frame, LABELS)
    fit: `texts` must be one column; saw the columns 'text', 'label'. Choose one by its name.
fit(TEXTS, frame)
    fit: `labels` must be one column; saw the columns 'text', 'label'. Choose one by its name.
fit_batch(frame, LABELS)
    fit_batches: `texts` must be one column; saw the columns 'text', 'label'. Choose one by its name.
"""

OF_COUNTS = """
fit_counts(y=["same"] * 4)
    AttentionClassifier.fit: `y` must have at least two classes; saw one class only, 'same'.
    Add documents of another class.
fit_counts(class_weight={0: 0, 1: 0})
fit_counts(class_weight={0: -1, 1: 1})
fit_counts(class_weight={0: np.nan, 1: 1})
fit_counts(class_weight={0: 1e300, 1: 1})
    AttentionClassifier.fit: `sample_weight and class_weight` must be at least 0
    and add up to a number from 1e-150 to 1e+150; saw a sum of ....
fit_counts(np.eye(4) * 1e13)
    AttentionClassifier.fit: `X` must have entries up to 1e+12; saw 10000000000000.0. Divide them all.
fit_counts().predict(-COUNTS[:1] / 2)
    predict: `X` must have no negative entry, as in training; saw -1.0. Fit with such entries, or leave them out.
"""

OF_BAGS = """
fit_bags([np.ones((2, 3)), np.ones((2, 4))], [0, 1])
    BagClassifier.fit: `X[1]` must have shape (instances, d), the same d for all bags; saw 'shape (2, 4)'.
    Stack the vectors of one bag as rows.
fit_bags([np.ones((2, 3)), np.ones((0, 3))], [0, 1])
    BagClassifier.fit: `X[1]` must hold at least one instance; saw 'an empty bag'. Leave the bag out.
fit_bags([np.ones((2, 3)), np.array([[1, np.nan, 0]])], [0, 1])
    BagClassifier.fit: `X[1][0, 1]` must be finite; saw nan.
fit_bags([np.ones((2, 3)), np.full((1, 3), 1e308)], [0, 1])
    BagClassifier.fit: `X[1]` must have entries up to 1e+150; saw 1e+308. Scale the vectors.
fit_bags(np.full((2, 3), 1e308), [0, 1])
    BagClassifier.fit: `X` must have entries up to 1e+150; saw 1e+308. Scale the vectors.
fit_bags(np.array([[1.0, 2], [np.nan, 4]]), [0, 1])
    BagClassifier.fit: `X[1, 0]` must be finite; saw nan. Fill or drop NaN and inf first.
fit_bags(np.array([[1.0, 2], [3, -np.inf]]), [0, 1])
    BagClassifier.fit: `X[1, 1]` must be finite; saw -inf. Fill or drop NaN and inf first.
fit_bags([np.ones((2, 3)), [["a", "b", "c"]]], [0, 1])
    BagClassifier.fit: `X` must be numbers: an array (n, T, d) or a list of (T_i, d) arrays; saw [array(....
fit_bags([], [])
    BagClassifier.fit: `X` must hold at least one bag; saw 'none'.
fit_bags(y=[1, 0, 1])
    BagClassifier.fit: `y` must have one label for each of the 4 bags; saw shape (3,).
fit_bags(y=[[1, 0]] * 4)
    BagClassifier.fit: `y` must have one label for each of the 4 bags; saw shape (4, 2).
fit_bags(y=["same"] * 4)
    BagClassifier.fit: `y` must have at least two classes; saw one class only, 'same'. Add bags of another class.
fit_bags(y=[1, 0, np.nan, 0])
    BagClassifier.fit: `y` must be labels of classes: strings, integers or booleans; saw a missing label.
    Leave out the bags without one.
fit_bags(y=[0.5, 0.25, 1, 0])
fit_bags(y=["a", None, "b", "a"])
    BagClassifier.fit: `y` must be labels of classes: strings, integers or booleans; saw ....

fit_bags(features="cubic")
    BagClassifier: `features` must be one of 'rbf', 'quadratic', 'linear'; saw 'cubic'.
fit_bags(head="relu")
    BagClassifier: `head` must be one of 'linear', 'tanh'; saw 'relu'.
fit_bags(width=0)
    BagClassifier: `width` must be a finite number above 0; saw 0.
fit_bags(width="wide")
    BagClassifier: `width` must be "auto" or a number above 0; saw 'wide'.
fit_bags(pooling="max")
    BagClassifier: `pooling` must be one of 'auto', 'attention'; saw 'max'.
fit_bags(value_penalty=-1)
    BagClassifier: `value_penalty` must be a finite number above 0; saw -1.
fit_bags(attention_penalty=np.nan)
    BagClassifier: `attention_penalty` must be a finite number above 0; saw nan.
fit_bags(n_landmarks=1.5)
    BagClassifier: `n_landmarks` must be a whole number of at least 1; saw 1.5.
fit_bags(n_starts=0)
    BagClassifier: `n_starts` must be a whole number of at least 1; saw 0.
fit_bags(scale="yes")
    BagClassifier: `scale` must be True or False; saw 'yes'.
fit_bags(class_weight="heavy")
    BagClassifier: `class_weight` must be one of 'balanced'; saw 'heavy'.
fit_bags(weight=[1, 1])
fit_bags(weight=[1, -1, 1, 1])
fit_bags(weight=[1, np.nan, 1, 1])
fit_bags(weight=[0, 0, 0, 0])
fit_bags(weight="heavy")
fit_bags(weight=[[1], [2]])
    BagClassifier.fit: `sample_weight` must be 4 finite numbers, none negative and not all zero; saw ....
fit_bags(weight=[1e308] * 4)
fit_bags(weight=[1e200, 1, 1, 1])
fit_bags(class_weight={0: 1e308, 1: 1e308})
fit_bags(class_weight={0: 0, 1: 0})
fit_bags(class_weight={0: -1, 1: 1})
    BagClassifier.fit: `sample_weight and class_weight` must be at least 0
    and add up to a number from 1e-150 to 1e+150; saw a sum of ....
fit_bags(head="tanh", value_penalty=1e308, random_state=0)
    BagClassifier.fit: `penalties and weights` must give a finite objective; saw inf. Make them smaller.

ask_bags([np.ones((2, 3))])
    ...: `X` must have 4 features an instance, as in training; saw 3 features.
ask_bags([np.ones((2, 4)), np.ones((0, 4))])
    ...: `X[1]` must hold at least one instance; saw 'an empty bag'. Leave the bag out.
ask_bags(np.full((1, 4), np.inf))
    ...: `X[0, 0]` must be finite; saw inf. Fill or drop NaN and inf first.
ask_bags(np.full((1, 4), 1e308))
    ...: `X` must have entries up to 1e+150; saw 1e+308. Scale the vectors.
ask_bags([])
    ...: `X` must hold at least one bag; saw 'none'.
ask_bags("a text")
ask_bags(["a text"])
ask_bags(7)
ask_bags(None)
    ...: `X` must be numbers: an array (n, T, d) or a list of (T_i, d) arrays; saw ....
bags.explain(np.ones((0, 4)))
    explain: `X[0]` must hold at least one instance; saw 'an empty bag'. Leave the bag out.
bags.explain(np.ones((2, 3)))
    explain: `X` must have 4 features an instance, as in training; saw 3 features.
bags.explain([["a", "b", "c", "d"]])
bags.explain([[1, 2, 3, 4], [1, 2]])
    explain: `bag` must be one bag of numbers, an array (T, d); saw [[...]].
bags.explain(np.ones(4))
    explain: `bag` must be one bag, an array (T, d); saw 1 dimensions.
bags.explain(np.ones((1, 2, 4)))
    explain: `bag` must be one bag, an array (T, d); saw 3 dimensions.
"""


def column(name: str, values: list[Any]) -> Any:
    made = library(name)
    return made.array(values) if name == "pyarrow" else made.Series(values)


def fit(texts=("a great film", "a dull plot"), labels=(0, 1), weight=None, **options):
    kt.KeyTokenClassifier(**options).fit(texts, labels, weight)


def fit_prior(**options):
    fit(prior=kt.Prior(**options))


def fit_batch(texts=("a b", "c d"), labels=(0, 1)):
    kt.KeyTokenClassifier().fit_batches([(texts, labels)])


def fit_counts(X=COUNTS, y=(1, 1, 0, 0), **options):
    return kt.AttentionClassifier(**options).fit(X, y)


def fit_bags(X=BAGS, y=(1, 0, 1, 0), weight=None, **options):
    kt.BagClassifier(**options).fit(X, y, weight)


def each(*questions: Callable[[Any], Any]) -> Callable[[Any], None]:
    """All these questions at once: they are refused in the same words, but for the name of who refuses."""

    def ask(X: Any) -> None:
        errors = []
        for question in questions:
            with pytest.raises(kt.InputError) as refused:
                question(X)
            errors.append(refused.value)
        assert len({str(error).partition(": ")[2] for error in errors}) == 1
        raise errors[0]

    return ask


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the calls of the tables may name."""
    clf = kt.KeyTokenClassifier().fit(TEXTS, LABELS)
    bags = kt.BagClassifier(random_state=0).fit(*planted())
    ask = each(clf.predict, clf.predict_proba, clf.predict_log_proba, clf.decision_function)
    ask_bags = each(bags.predict, bags.predict_proba, bags.decision_function, bags.attention, bags.selected)
    return {**globals(), "clf": clf, "bags": bags, "ask": ask, "ask_bags": ask_bags}


@pytest.mark.parametrize("call, message", [*rows(OF_TEXTS), *rows(OF_COUNTS), *rows(OF_BAGS)])
def test_refusals(names, call, message):
    check_refused(call, names, message)


@pytest.mark.parametrize("call, message", rows(OF_FRAMES))
@pytest.mark.parametrize("name", ["pandas", "polars", "pyarrow"])
def test_refusals_of_frames_of_more_columns(names, name, call, message):
    """They give the names of their columns when they are iterated: as many predictions as names, and not a word."""
    columns = {"text": TEXTS, "label": LABELS}
    frame = library(name).table(columns) if name == "pyarrow" else library(name).DataFrame(columns)
    check_refused(call, {**names, "frame": frame}, message)


TEXT, BAG = kt.KeyTokenClassifier(), kt.BagClassifier()


@pytest.mark.parametrize("question", [TEXT.predict, TEXT.explain, TEXT.explain_many, BAG.predict, BAG.explain])
def test_what_is_not_fitted_says_so(question):
    with pytest.raises(NotFittedError):
        question("a" if question == TEXT.explain else ["a"] if question.__self__ is TEXT else np.ones((1, 2)))
