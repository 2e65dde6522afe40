"""The contenders: each has `fit(texts, labels)` and `predict(texts)`, both from raw text, and `save(folder)`.

A contender imports its library when it is built, not when this file is read: the clock of a fit starts later, and the
memory of one contender does not hold the libraries of another. `parts` says how the last fit and the last prediction
spent their time, where a contender can tell.
"""

import pickle
import re
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.measure import THREADS, seconds

WORD = re.compile(r"\w+")
FEW_DOCUMENTS = 20_000  # below this, fastText needs more epochs
QUANTISED_FEATURES = 100_000  # that a quantised fastText model keeps, as in its own examples
SMALL_BYTES = 2_000_000  # of a compressed keytokens model


class FastText:
    """fastText with hashed n-grams. It learns from a file only, so writing that file is part of its fit.

    `epochs=None`: 25 below 20,000 texts and 5 from there on.
    """

    library = "fasttext"

    def __init__(
        self, epochs: int | None = None, lr: float = 0.5, word_ngrams: int = 2, threads: int = THREADS
    ) -> None:
        import fasttext

        self._train = fasttext.train_supervised
        self._epochs, self._options = epochs, {"lr": lr, "wordNgrams": word_ngrams, "thread": threads}
        self.parts: dict[str, float] = {}

    def fit(self, texts: Sequence[str], labels: Sequence[int]) -> "FastText":
        return self.fit_lines([prepared(text) for text in texts], labels)

    def fit_lines(self, lines: Sequence[str], labels: Sequence[int]) -> "FastText":
        epochs = self._epochs or (25 if len(lines) < FEW_DOCUMENTS else 5)
        common = {"dim": 10, "minCount": 1, "bucket": 2_000_000, "epoch": epochs, "verbose": 0}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "train.txt"
            with path.open("w", encoding="utf-8") as file:
                file.writelines(f"__label__{y} {line}\n" for line, y in zip(lines, labels, strict=True))

            def train() -> None:
                self._model = self._train(str(path), **common, **self._options)

            self.parts["fit_alone_s"] = seconds(train)
        return self

    def predict(self, texts: Sequence[str]) -> np.ndarray:
        return self.predict_lines([prepared(text) for text in texts])

    def predict_lines(self, lines: Sequence[str]) -> np.ndarray:
        found: list[str] = []

        def ask() -> None:
            best, _ = self._model.predict(list(lines))
            found.extend(labels[0] for labels in best)

        spent = seconds(ask)
        if len(lines) > 1:
            self.parts["predict_alone_s"] = spent
        return np.array([int(label.removeprefix("__label__")) for label in found])

    def save(self, folder: Path) -> dict[str, Path]:
        """The whole model, then the quantised one: this changes the model."""
        whole, small = folder / "model.bin", folder / "model.ftz"
        self._model.save_model(str(whole))
        self._model.quantize(qnorm=True, cutoff=QUANTISED_FEATURES)
        self._model.save_model(str(small))
        return {"whole": whole, "small": small}


class FastTextFive(FastText):
    """Five epochs, however few the texts: what the bars on time are set against."""

    def __init__(self) -> None:
        super().__init__(epochs=5)


class Pickled:
    """A contender of scikit-learn, written as a pickle."""

    library = "sklearn"
    parts: dict[str, float] = {}  # noqa: RUF012 - nothing to tell

    def save(self, folder: Path) -> dict[str, Path]:
        path = folder / "model.pickle"
        path.write_bytes(pickle.dumps(self.__dict__, protocol=5))
        return {"whole": path}


class TfidfLogistic(Pickled):
    """TF-IDF of uni- and bigrams, then logistic regression."""

    def __init__(self) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        self._model = make_pipeline(
            TfidfVectorizer(token_pattern=WORD.pattern, ngram_range=(1, 2), sublinear_tf=True, min_df=2),
            LogisticRegression(C=10, max_iter=1000),
        )

    def fit(self, texts: Sequence[str], labels: Sequence[int]) -> "TfidfLogistic":
        self._model.fit(texts, labels)
        return self

    def predict(self, texts: Sequence[str]) -> np.ndarray:
        return self._model.predict(texts)


class NBSVMOnCounts:
    """Wang and Manning (2012): a linear SVM on presence features scaled by naive Bayes log-count ratios.

    The weights are w' = (1 - beta) mean|w| + beta w; with more than two classes, one such model per class. The
    intercept is interpolated in the same way, between the log odds of the classes and that of the SVM: keeping the
    SVM's own costs this peer 5 points of accuracy on Yelp reviews, of which 77 % are positive. 10,000 iterations,
    because 1,000 do not always converge. `beta` plays no part in the fit: it may be changed afterwards.
    """

    def __init__(self, C: float = 1.0, beta: float = 0.25) -> None:
        self.C, self.beta = C, beta

    def fit(self, X, y: np.ndarray) -> "NBSVMOnCounts":
        """X holds ones where a token is present."""
        self.classes_ = np.unique(y)
        positive = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        self._parts = [self._fit_one(X, y == label) for label in positive]
        return self

    def predict(self, X) -> np.ndarray:
        scores = np.column_stack([X @ w + b for w, b in map(self._mixed, self._parts)])
        if len(self.classes_) == 2:
            return self.classes_[(scores[:, 0] > 0).astype(int)]
        return self.classes_[scores.argmax(axis=1)]

    def _fit_one(self, X, is_positive: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float]:
        from sklearn.svm import LinearSVC

        inside = 1 + X[is_positive].sum(axis=0).A1
        outside = 1 + X[~is_positive].sum(axis=0).A1
        ratio = np.log(inside / inside.sum()) - np.log(outside / outside.sum())
        prior = np.log(is_positive.sum() / (~is_positive).sum())
        svm = LinearSVC(C=self.C, max_iter=10_000, random_state=0).fit(X.multiply(ratio).tocsr(), is_positive)
        return ratio, svm.coef_[0], svm.intercept_[0], prior

    def _mixed(self, part: tuple[np.ndarray, np.ndarray, float, float]) -> tuple[np.ndarray, float]:
        ratio, w, b, prior = part
        bayes = (1 - self.beta) * np.abs(w).mean()
        return ratio * (bayes + self.beta * w), bayes * prior + self.beta * b


class NBSVM(Pickled):
    """`NBSVMOnCounts` from raw text."""

    def __init__(self) -> None:
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.svm import LinearSVC  # noqa: F401 - loaded before the clock starts

        self._counter = CountVectorizer(token_pattern=WORD.pattern, ngram_range=(1, 2), min_df=2, binary=True)
        self._model = NBSVMOnCounts()

    def fit(self, texts: Sequence[str], labels: Sequence[int]) -> "NBSVM":
        self._model.fit(self._counter.fit_transform(texts).astype(float), np.asarray(labels))
        return self

    def predict(self, texts: Sequence[str]) -> np.ndarray:
        return self._model.predict(self._counter.transform(texts).astype(float))


class KeyTokens:
    """This project, with its default options; `model` gives access to probabilities and explanations."""

    library = "keytokens"
    options: dict[str, object] = {}  # noqa: RUF012 - never changed
    parts: dict[str, float] = {}  # noqa: RUF012 - nothing to tell

    def __init__(self) -> None:
        from keytokens import KeyTokenClassifier

        self.model = KeyTokenClassifier(random_state=0, **self.options)

    def fit(self, texts: Sequence[str], labels: Sequence[int]) -> "KeyTokens":
        self.model.fit(texts, labels)
        return self

    def predict(self, texts: Sequence[str]) -> np.ndarray:
        return self.model.predict(texts)

    def save(self, folder: Path) -> dict[str, Path]:
        self.model.save(folder / "whole")
        forms = {"whole": folder / "whole"}
        if hasattr(self.model, "compressed"):
            self.model.compressed(SMALL_BYTES).save(folder / "small")
            forms["small"] = folder / "small"
        return forms


class KeyTokensBigrams(KeyTokens):
    """Single words and pairs of words, whatever the default is."""

    options = {"ngrams": (1, 2)}  # noqa: RUF012 - never changed


CONTENDERS = {
    "keytokens": KeyTokens,
    "keytokens_bigrams": KeyTokensBigrams,
    "fasttext": FastText,
    "fasttext_5": FastTextFive,
    "tfidf_lr": TfidfLogistic,
    "nbsvm": NBSVM,
}
OURS = ["keytokens", "keytokens_bigrams"]
FAST = [*OURS, "fasttext_5"]  # those that can be repeated often
TIMED = [*FAST, "tfidf_lr", "nbsvm"]


def installed(names: Sequence[str]) -> list[str]:
    """Those contenders whose library is here; the others are named on the screen, not passed over in silence."""
    present = [name for name in names if find_spec(CONTENDERS[name].library)]
    if missing := [name for name in names if name not in present]:
        print(f"left out, not installed: {', '.join(missing)}")
    return present


def distinct(names: Sequence[str]) -> list[str]:
    """Without `keytokens_bigrams` where that is the default."""
    from keytokens import KeyTokenClassifier

    same = KeyTokenClassifier().ngrams == (1, 2)
    return [name for name in names if not (same and name == "keytokens_bigrams" and "keytokens" in names)]


def prepared(text: str) -> str:
    """What fastText is given: words in lower case with spaces between them."""
    return " ".join(WORD.findall(text.lower()))
