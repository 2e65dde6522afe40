"""Golden files: `python -m tests.golden.golden` writes them anew, which only a wanted change of an answer justifies.

models.npz           trained models as plain arrays (vocabulary, attention a, values B, intercept c, ...), made-up texts
explanations.json.gz the records of their explanations, 200 in all, without sentences
fits.json.gz         of fits to four real sets: size and hash of the vocabulary, counts, probabilities of texts
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.datasets import load

from keytokens import BagClassifier, KeyTokenClassifier, Prior
from keytokens.estimators.attention import Exact
from keytokens.text import Vocabulary, count

from ..corpus import reviews, topics

HERE = Path(__file__).parent
ARRAYS = ("attention", "values", "intercept", "empty", "mean_attention", "class_counts")
TEXT_MODELS: dict[str, dict[str, Any]] = {
    "binary": {},
    "log counts": {"counts": "log", "ngrams": (1, 2)},
    "presence, no sink": {"counts": "binary", "prior": Prior(sink=0), "ngrams": (1, 2)},
    "brief": {"brevity": 0.8},
    "classes": {},
    "classes, log": {"counts": "log", "ngrams": (1, 2)},
}
BAG_MODELS: dict[str, dict[str, Any]] = {"bags": {}, "bags of three": {"features": "linear"}}
N_TEXTS, N_BAGS = 28, 16  # explained, of each model
NOT_FROZEN = ("sentence", "covers", "rival", "difference", "sink_difference")
SETS = ("imdb", "yelp_reviews", "yelp_sentences", "ag_news")
N_FITTED, N_ASKED = 3000, 2000


def corpus(name: str, seed: int) -> tuple[list[str], list[Any]]:
    return topics(160, seed) if name.startswith("classes") else reviews(160, seed)


def texts_to_explain(name: str) -> list[str]:
    """Some texts, pairs of texts, and the ends of the scale."""
    texts = corpus(name, 5)[0][: N_TEXTS + 6]
    return [*texts[: N_TEXTS - 8], *(f"{a}! {b}" for a, b in zip(texts[-12::2], texts[-11::2], strict=True)), "", "?"]


def bags(name: str, seed: int) -> tuple[list[Any], list[int]]:
    rng = np.random.default_rng(seed)
    labels = (np.arange(60) % (3 if name == "bags of three" else 2)).tolist()
    return [rng.normal(size=(rng.integers(2, 9), 4)) + 0.8 * label for label in labels], labels


def text_model(arrays: dict[str, Any], options: dict[str, Any]) -> KeyTokenClassifier:
    """A model of these arrays, however estimators are built inside."""
    clf = KeyTokenClassifier(**options)
    clf.classes_ = arrays["classes"]
    clf.vocabulary_ = Vocabulary.from_tokens(str(arrays["tokens"]).split("\n"))
    for name in ARRAYS:
        setattr(clf, f"{name}_", arrays[name])
    clf.log_sink_ = float(arrays["log_sink"])
    clf._exact = Exact(clf._present())
    return clf


def bag_model(arrays: dict[str, Any], options: dict[str, Any]) -> BagClassifier:
    clf = BagClassifier(**options)
    clf.from_arrays({name: array for name, array in arrays.items() if name != "classes"}, arrays["classes"])
    return clf


def explained(models: dict[str, dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The model's name and the record of each explanation."""
    for name, options in TEXT_MODELS.items():
        clf = text_model(models[name], options)
        for e in clf.explain_many(texts_to_explain(name)):
            yield name, without_sentences(e.to_dict(words=True))
    for name, options in BAG_MODELS.items():
        bagged = bag_model(models[name], options)
        for bag in bags(name, 7)[0][:N_BAGS]:
            yield name, without_sentences(bagged.explain(bag).to_dict())


def without_sentences(record: Any) -> Any:
    """Without sentences, and without what is said of a rival, which is the same numbers subtracted."""
    if isinstance(record, dict):
        return {key: without_sentences(value) for key, value in record.items() if key not in NOT_FROZEN}
    return [without_sentences(each) for each in record] if isinstance(record, list) else record


def stored_models() -> dict[str, dict[str, Any]]:
    with np.load(HERE / "models.npz") as file:
        found: dict[str, dict[str, Any]] = {}
        for key in file.files:
            name, array = key.split("/")
            found.setdefault(name, {})[array] = file[key]
    return found


def stored(name: str) -> Any:
    return json.loads(gzip.decompress((HERE / name).read_bytes()))


def fit_of(name: str) -> dict[str, Any]:
    """A fit to a real set, as numbers that do not show its texts."""
    texts, labels = load(name)
    order = np.random.default_rng(0).permutation(len(texts))
    own, asked = order[:N_FITTED].tolist(), order[N_FITTED : N_FITTED + N_ASKED].tolist()
    clf = KeyTokenClassifier(random_state=0).fit([texts[i] for i in own], [labels[i] for i in own])
    counts = count([texts[i] for i in own], clf.vocabulary_)
    P = clf.predict_proba([texts[i] for i in asked])
    truth = np.searchsorted(clf.classes_, np.array([labels[i] for i in asked]))
    return {
        "tokens": len(clf.vocabulary_),
        "vocabulary": hashlib.sha256("\n".join(sorted(clf.vocabulary_.tokens)).encode()).hexdigest(),
        "entries": counts.nnz,
        "counts": counts.sum(),
        "accuracy": float((P.argmax(axis=1) == truth).mean()),
        "probabilities": np.round(P, 6).tolist(),
    }


def write() -> None:
    arrays: dict[str, Any] = {}
    for name, options in TEXT_MODELS.items():
        clf = KeyTokenClassifier(**options, random_state=0).fit(*corpus(name, 4))
        parts = {part: getattr(clf, f"{part}_") for part in (*ARRAYS, "classes", "log_sink")}
        parts["tokens"] = np.array("\n".join(clf.vocabulary_.tokens))
        arrays |= {f"{name}/{part}": array for part, array in parts.items()}
    for name, options in BAG_MODELS.items():
        bagged = BagClassifier(**options, random_state=0).fit(*bags(name, 6))
        arrays |= {
            f"{name}/{part}": array for part, array in {**bagged.to_arrays(), "classes": bagged.classes_}.items()
        }
    np.savez_compressed(HERE / "models.npz", **arrays)
    written = {"explanations.json.gz": list(explained(stored_models())), "fits.json.gz": dict(map(_named, SETS))}
    for file, content in written.items():
        (HERE / file).write_bytes(gzip.compress(json.dumps(content).encode(), mtime=0))


def _named(name: str) -> tuple[str, dict[str, Any]]:
    return name, fit_of(name)


if __name__ == "__main__":
    write()
