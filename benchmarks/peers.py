"""The contenders: each has `fit(texts, labels)` and `predict(texts)`, both from raw text.

A contender imports its library when it is built, not when this file is read: the clock of a fit starts later, and the
memory of one contender does not hold the libraries of another.
"""

import re
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

WORD = re.compile(r"\w+")
FEW_DOCUMENTS = 20_000  # below this, fastText needs more epochs


class FastText:
    """fastText with hashed bigrams. It learns from a file only, so writing that file is part of its fit."""

    library = "fasttext"

    def __init__(self) -> None:
        import fasttext

        self._train = fasttext.train_supervised

    def fit(self, texts: Sequence[str], labels: Sequence[int]) -> "FastText":
        epochs = 25 if len(texts) < FEW_DOCUMENTS else 5
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "train.txt"
            with path.open("w", encoding="utf-8") as file:
                file.writelines(f"__label__{y} {_words(text)}\n" for text, y in zip(texts, labels, strict=True))
            self._model = self._train(
                str(path), wordNgrams=2, dim=10, lr=0.5, minCount=1, bucket=2_000_000, epoch=epochs, thread=2, verbose=0
            )
        return self

    def predict(self, texts: Sequence[str]) -> np.ndarray:
        best, _ = self._model.predict([_words(text) for text in texts])
        return np.array([int(labels[0].removeprefix("__label__")) for labels in best])


class TfidfLogistic:
    """TF-IDF of uni- and bigrams, then logistic regression."""

    library = "sklearn"

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


class NBSVM:
    """Wang and Manning (2012): a linear SVM on presence features scaled by naive Bayes log-count ratios.

    The weights are w' = (1 - beta) mean|w| + beta w; with more than two classes, one such model per class. The
    intercept is interpolated in the same way, between the log odds of the classes and that of the SVM: keeping the
    SVM's own costs this peer 5 points of accuracy on Yelp reviews, of which 77 % are positive. 10,000 iterations,
    because 1,000 do not always converge.
    """

    library = "sklearn"
    beta = 0.25

    def __init__(self) -> None:
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.svm import LinearSVC

        self._counter = CountVectorizer(token_pattern=WORD.pattern, ngram_range=(1, 2), min_df=2, binary=True)
        self._svm = LinearSVC

    def fit(self, texts: Sequence[str], labels: Sequence[int]) -> "NBSVM":
        X, y = self._counter.fit_transform(texts).astype(float), np.asarray(labels)
        self.classes_ = np.unique(y)
        positive = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        models = [self._fit_one(X, y == label) for label in positive]
        self._weights = np.column_stack([w for w, _ in models])
        self._intercepts = np.array([b for _, b in models])
        return self

    def predict(self, texts: Sequence[str]) -> np.ndarray:
        scores = self._counter.transform(texts).astype(float) @ self._weights + self._intercepts
        if len(self.classes_) == 2:
            return self.classes_[(scores[:, 0] > 0).astype(int)]
        return self.classes_[scores.argmax(axis=1)]

    def _fit_one(self, X, is_positive: np.ndarray) -> tuple[np.ndarray, float]:
        inside = 1 + X[is_positive].sum(axis=0).A1
        outside = 1 + X[~is_positive].sum(axis=0).A1
        ratio = np.log(inside / inside.sum()) - np.log(outside / outside.sum())
        prior = np.log(is_positive.sum() / (~is_positive).sum())
        svm = self._svm(C=1, max_iter=10_000, random_state=0).fit(X.multiply(ratio).tocsr(), is_positive)
        w, b = svm.coef_[0], svm.intercept_[0]
        bayes = (1 - self.beta) * np.abs(w).mean()
        return ratio * (bayes + self.beta * w), bayes * prior + self.beta * b


class KeyTokens:
    """This project, with its default options; `model` gives access to probabilities and explanations."""

    library = "keytokens"

    def __init__(self) -> None:
        from keytokens import KeyTokenClassifier

        self.model = KeyTokenClassifier(random_state=0)

    def fit(self, texts: Sequence[str], labels: Sequence[int]) -> "KeyTokens":
        self.model.fit(texts, labels)
        return self

    def predict(self, texts: Sequence[str]) -> np.ndarray:
        return self.model.predict(texts)


CONTENDERS = {"keytokens": KeyTokens, "fasttext": FastText, "tfidf_lr": TfidfLogistic, "nbsvm": NBSVM}


def installed(names: Sequence[str]) -> list[str]:
    """Those contenders whose library is here; the others are named on the screen, not passed over in silence."""
    present = [name for name in names if find_spec(CONTENDERS[name].library)]
    if missing := [name for name in names if name not in present]:
        print(f"left out, not installed: {', '.join(missing)}")
    return present


def _words(text: str) -> str:
    return " ".join(WORD.findall(text.lower()))
