"""The peers with options chosen for each fold: a small grid, judged on a fifth of the training part that is set aside.

No option is chosen by the test part of a fold. The vocabulary of a fold (tokens in at least two of its training texts)
serves the grid too; idf, log-count ratios and weights are learnt from the other four fifths alone.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from benchmarks.peers import FEW_DOCUMENTS, WORD, FastText, NBSVMOnCounts, prepared

LR_C = (1.0, 3.0, 10.0, 30.0, 100.0)
SVM_C = (0.01, 0.1, 1.0)
BETAS = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
FASTTEXT = {"lr": (0.1, 0.5, 1.0), "word_ngrams": (1, 2, 3), "epochs": (5, 25)}

Options = dict[str, Any]
Trial = tuple[Options, float]


@dataclass(frozen=True)
class Fold:
    """Texts to learn from and texts to be judged by."""

    train: list[str]
    y_train: np.ndarray
    test: list[str]
    y_test: np.ndarray

    def inner(self) -> tuple[np.ndarray, np.ndarray]:
        """Four fifths and one fifth of the training part: what the grid learns from, and what judges it."""
        everyone = np.arange(len(self.train))
        return tuple(train_test_split(everyone, test_size=0.2, random_state=0, stratify=self.y_train))


@dataclass(frozen=True)
class Verdict:
    """Accuracy on the test part at the usual options and at the chosen ones, and all that was tried."""

    standard: Trial
    tuned: Trial
    trials: list[Trial]


def best(trials: Iterable[Trial]) -> Options:
    """The options with the largest accuracy; the first of them if several are equal.

    >>> best([({"C": 1}, 0.8), ({"C": 2}, 0.9), ({"C": 3}, 0.9)])
    {'C': 2}
    """
    return max(trials, key=lambda trial: trial[1])[0]


def one_at_a_time(score: Callable[[Options], float], start: Options, grid: dict[str, Sequence[Any]]) -> list[Trial]:
    """Coordinate search: the best value of the first option, then of the second with that one, and so on.

    >>> tried = one_at_a_time(lambda o: o["x"] + o["y"], {"x": 1, "y": 4}, {"x": (1, 2), "y": (4, 5)})
    >>> [tuple(options.values()) for options, _ in tried]
    [(1, 4), (2, 4), (2, 5)]
    """
    trials = [(start, score(start))]
    for name, values in grid.items():
        now = best(trials)
        others = [now | {name: value} for value in values if value != now[name]]
        trials += [(options, score(options)) for options in others]
    return trials


def accuracy(predicted: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean(predicted == y))


def said(options: Options) -> str:
    """Options as they are printed.

    >>> said({"C": 10.0, "beta": 0.25})
    'C=10 beta=0.25'
    """
    return " ".join(f"{name}={value:g}" for name, value in options.items())


def fasttext(fold: Fold) -> Verdict:
    """Learning rate, length of n-grams, epochs, one after the other from 5 epochs on; the usual options compete too.

    One thread: the same model on every run.
    """
    lines, test = [[prepared(text) for text in texts] for texts in (fold.train, fold.test)]
    learn, judge = fold.inner()

    def on_test(options: Options) -> float:
        model = FastText(**options, threads=1).fit_lines(lines, fold.y_train)
        return accuracy(model.predict_lines(test), fold.y_test)

    def on_inner(options: Options) -> float:
        model = FastText(**options, threads=1).fit_lines([lines[k] for k in learn], fold.y_train[learn])
        return accuracy(model.predict_lines([lines[k] for k in judge]), fold.y_train[judge])

    standard = {"epochs": 25 if len(lines) < FEW_DOCUMENTS else 5, "lr": 0.5, "word_ngrams": 2}
    trials = one_at_a_time(on_inner, standard | {"epochs": 5}, FASTTEXT)
    if standard not in [options for options, _ in trials]:
        trials.append((standard, on_inner(standard)))
    return _verdict(standard, trials, on_test)


class Counted:
    """A fold as counts of uni- and bigrams, made once for both contenders of scikit-learn."""

    def __init__(self, fold: Fold) -> None:
        counter = CountVectorizer(token_pattern=WORD.pattern, ngram_range=(1, 2), min_df=2, dtype=np.float64)
        self.train, self.test = counter.fit_transform(fold.train), counter.transform(fold.test)
        self.y_train, self.y_test = fold.y_train, fold.y_test
        self.learn, self.judge = fold.inner()

    def logistic(self) -> Verdict:
        standard = {"C": 10.0}
        inner = _LogisticPath(self.train[self.learn], self.y_train[self.learn])
        outer = _LogisticPath(self.train, self.y_train)
        trials = [
            (options, accuracy(inner.predict(options["C"], self.train[self.judge]), self.y_train[self.judge]))
            for options in ({"C": C} for C in LR_C)
        ]
        return _verdict(standard, trials, lambda o: accuracy(outer.predict(o["C"], self.test), self.y_test))

    def nbsvm(self) -> Verdict:
        """beta costs nothing: it only mixes what is fitted."""
        train, test = _presence(self.train), _presence(self.test)
        trials = []
        for C in SVM_C:
            model = NBSVMOnCounts(C).fit(train[self.learn], self.y_train[self.learn])
            for model.beta in BETAS:
                scored = accuracy(model.predict(train[self.judge]), self.y_train[self.judge])
                trials.append(({"C": C, "beta": model.beta}, scored))
        fitted: dict[float, NBSVMOnCounts] = {}

        def on_test(options: Options) -> float:
            C = options["C"]
            fitted[C] = fitted.get(C) or NBSVMOnCounts(C).fit(train, self.y_train)
            fitted[C].beta = options["beta"]
            return accuracy(fitted[C].predict(test), self.y_test)

        return _verdict({"C": 1.0, "beta": 0.25}, trials, on_test)


class _LogisticPath:
    """Logistic regressions on TF-IDF, each started at the last one: the same optimum, found sooner."""

    def __init__(self, counts, y: np.ndarray) -> None:
        self._tfidf = TfidfTransformer(sublinear_tf=True).fit(counts)
        self._X, self._y = self._tfidf.transform(counts), y
        self._model = LogisticRegression(max_iter=1000, warm_start=True)

    def predict(self, C: float, counts) -> np.ndarray:
        return self._model.set_params(C=C).fit(self._X, self._y).predict(self._tfidf.transform(counts))


def _presence(counts):
    present = counts.copy()
    present.data[:] = 1
    return present


def _verdict(standard: Options, trials: list[Trial], on_test: Callable[[Options], float]) -> Verdict:
    chosen = best(trials)
    usual = (standard, on_test(standard))
    return Verdict(usual, usual if chosen == standard else (chosen, on_test(chosen)), trials)
