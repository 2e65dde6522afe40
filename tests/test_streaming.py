"""Fits from files: the same model as in memory, within a budget, and after an interruption."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import keytokens.core.counts
import keytokens.streaming
from keytokens import KeyTokenClassifier
from keytokens.errors import InputError
from keytokens.streaming import Workplace, tokens_within

from .corpus import reviews

FITTED = ("attention_", "values_", "intercept_", "empty_", "mean_attention_", "class_counts_", "history_")


def in_batches(texts, labels, size=37):
    return [(texts[at : at + size], labels[at : at + size]) for at in range(0, len(texts), size)]


def three_classes(texts, labels):
    return ["short" if len(text) % 3 == 0 else label for text, label in zip(texts, labels, strict=True)]


def same(one: KeyTokenClassifier, other: KeyTokenClassifier) -> None:
    assert one.vocabulary_.tokens == other.vocabulary_.tokens
    assert one.classes_.tolist() == other.classes_.tolist()
    for name in FITTED:
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name
    assert (one.n_iter_, one.status_) == (other.n_iter_, other.status_)


@pytest.fixture
def small_blocks(monkeypatch):
    """Several blocks also of a small corpus."""
    monkeypatch.setattr(keytokens.core.counts, "BLOCK", 700)


OPTIONS = [
    {},
    {"counts": "log", "ngrams": (1, 2)},
    {"counts": "binary", "max_tokens": 150, "brevity": 0.8},
    {"class_weight": "balanced", "sink": 0, "ngrams": (2, 2)},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("many", [False, True], ids=["two", "three"])
def test_the_same_bits_as_in_memory(options, many, small_blocks):
    texts, labels = reviews(300)
    labels = three_classes(texts, labels) if many else labels
    whole = KeyTokenClassifier(**options).fit(texts, labels)
    flowing = KeyTokenClassifier(**options, threads=1).fit_batches(iter(in_batches(texts, labels)))
    same(whole, flowing)


def test_labels_may_be_numbers_or_booleans():
    texts, labels = reviews(60)
    for kind in (lambda y: int(y == "pos"), lambda y: y == "pos"):
        y = [kind(label) for label in labels]
        found = KeyTokenClassifier().fit_batches(in_batches(texts, np.array(y)))
        same(KeyTokenClassifier().fit(texts, y), found)
        assert found.predict(texts[:2]).dtype == np.array(y).dtype


def test_weights_of_classes_by_name():
    texts, labels = reviews(80)
    options = {"class_weight": {"pos": 2.0, "neg": 0.5}}
    same(
        KeyTokenClassifier(**options).fit(texts, labels),
        KeyTokenClassifier(**options).fit_batches(in_batches(texts, labels)),
    )


@pytest.mark.parametrize("stage", ["reading", "training"])
def test_an_interrupted_fit_goes_on_to_the_same_bits(stage, tmp_path, monkeypatch, small_blocks):
    texts, labels = reviews(300)
    monkeypatch.setattr(keytokens.streaming, "_EVERY", 0.0)
    undisturbed = KeyTokenClassifier().fit(texts, labels)
    save = Workplace.save_state
    saved = []

    def stop(self, state, history):
        save(self, state, history)
        saved.append(len(history))
        if len(saved) == 4:
            raise KeyboardInterrupt

    def broken():
        yield from in_batches(texts, labels)[:3]
        raise KeyboardInterrupt

    monkeypatch.setattr(Workplace, "save_state", stop)
    batches = broken() if stage == "reading" else in_batches(texts, labels)
    with pytest.raises(KeyboardInterrupt):
        KeyTokenClassifier().fit_batches(batches, folder=tmp_path)
    monkeypatch.setattr(Workplace, "save_state", save)
    rest = in_batches(texts, labels) if stage == "reading" else iter(())  # the texts are not asked for again
    resumed = KeyTokenClassifier(threads=1).fit_batches(rest, folder=tmp_path, resume=True)
    same(undisturbed, resumed)


def test_another_run_is_not_gone_on_with(tmp_path):
    texts, labels = reviews(60)
    KeyTokenClassifier().fit_batches(in_batches(texts, labels), folder=tmp_path, source="a.csv")
    with pytest.raises(InputError, match="differs in source, spread") as caught:
        KeyTokenClassifier(spread=2.0).fit_batches([], folder=tmp_path, resume=True, source="b.csv")
    assert str(tmp_path) in str(caught.value)
    # without `resume` it begins anew, whatever lies there
    KeyTokenClassifier(spread=2.0).fit_batches(in_batches(texts, labels), folder=tmp_path, source="b.csv")


@pytest.mark.parametrize("name", ["counts.json", "gathered.safetensors", "indices", "state.safetensors"])
def test_damaged_files_are_refused_in_one_line(name, tmp_path, monkeypatch):
    monkeypatch.setattr(keytokens.streaming, "_EVERY", 0.0)
    texts, labels = reviews(60)
    KeyTokenClassifier().fit_batches(in_batches(texts, labels), folder=tmp_path)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match=r"is damaged\. Cure: begin anew"):
        KeyTokenClassifier().fit_batches([], folder=tmp_path, resume=True)


def test_the_budget_bounds_the_tokens(monkeypatch):
    gigabyte = 1_000_000_000
    assert tokens_within(gigabyte, 2, 1000) > tokens_within(600_000_000, 2, 1000) > 100_000
    assert tokens_within(gigabyte, 20, 1000) < tokens_within(gigabyte, 2, 1000) / 3
    assert tokens_within(gigabyte, 2, 5_000_000) < tokens_within(gigabyte, 2, 1000) / 1.5
    monkeypatch.setattr(keytokens.streaming, "tokens_within", lambda memory, n_classes, n_texts: 120)
    texts, labels = reviews(200)
    bounded = KeyTokenClassifier().fit_batches(in_batches(texts, labels), memory=10**9)
    assert len(bounded.vocabulary_) == 120
    same(KeyTokenClassifier(max_tokens=120).fit(texts, labels), bounded)


@pytest.mark.parametrize(
    "batches, options, says",
    [
        ([(["a b"], ["x", "y"])], {}, "one label for each text"),
        ([(["a b", "c"], ["x", "x"])], {}, "at least two classes"),
        ([(["a b", 3], ["x", "y"])], {}, "be a string"),
        ([(["", " "], ["x", "y"])], {}, "at least one token"),
        ([], {}, "at least"),
        ([(["a b", "c d"], ["x", "y"])], {"memory": 1000}, "of at least 5e"),
        ([(["a b", "c d"], ["x", 1])], {}, "all of one kind"),
    ],
)
def test_bad_batches(batches, options, says):
    with pytest.raises(ValueError, match=says):
        KeyTokenClassifier().fit_batches(batches, **options)


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    texts, labels = reviews(60)
    KeyTokenClassifier().fit_batches(in_batches(texts, labels))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_others_keeps_its_files(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    texts, labels = reviews(60)
    KeyTokenClassifier().fit_batches(in_batches(texts, labels), folder=tmp_path)
    place = Workplace(Path(tmp_path), {}, resume=False)
    assert [file.name for file in place.folder.iterdir()] == ["mine.txt"]


def test_the_record_of_a_run_is_readable(tmp_path):
    texts, labels = reviews(60)
    KeyTokenClassifier().fit_batches(in_batches(texts, labels), folder=tmp_path, source="here")
    record = json.loads((tmp_path / "counts.json").read_text())
    assert record["key"]["source"] == "here"
    assert record["classes"] == ["neg", "pos"]


def test_counts_that_name_no_token_are_not_trained_on(tmp_path):
    """Products of sparse matrices do not check their indices: a wrong one would read memory that is not theirs."""
    texts, labels = reviews(60)
    KeyTokenClassifier().fit_batches(in_batches(texts, labels), folder=tmp_path)
    for name, value in (("indices", np.int32(2**30)), ("indices", np.int32(-1)), ("data", np.float32(np.nan))):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[:40] + value.tobytes() + content[44:])
        with pytest.raises(InputError, match=r"is damaged\. Cure: begin anew"):
            KeyTokenClassifier().fit_batches([], folder=tmp_path, resume=True)
        (tmp_path / name).write_bytes(content)
    KeyTokenClassifier().fit_batches([], folder=tmp_path, resume=True)
