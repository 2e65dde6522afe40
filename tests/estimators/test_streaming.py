"""Fits from files: the same model as in memory, within a budget, and after an interruption."""

import hashlib
import json
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import keytokens.estimators.streaming
import keytokens.model.blocks
from keytokens import KeyTokenClassifier, Prior
from keytokens.base.errors import InputError
from keytokens.estimators.saving import load
from keytokens.estimators.streaming import LEAST_MEMORY, Budget, Workplace, sealed, unsealed
from keytokens.text import ngrams, words
from keytokens.text.hashing import factorise

from ..corpus import reviews

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
    monkeypatch.setattr(keytokens.model.blocks, "BLOCK", 700)


OPTIONS = [
    {},
    {"counts": "log", "ngrams": (1, 2)},
    {"counts": "binary", "max_tokens": 150, "brevity": 0.8},
    {"class_weight": "balanced", "prior": Prior(sink=0), "ngrams": (2, 2)},
    {"class_weight": {"pos": 2.0, "neg": 0.5, "short": 1.0}},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("many", [False, True], ids=["two", "three"])
def test_the_same_bits_as_in_memory(options, many, small_blocks):
    texts, labels = reviews(300)
    labels = three_classes(texts, labels) if many else labels
    whole = KeyTokenClassifier(**options).fit(texts, labels)
    flowing = KeyTokenClassifier(**options, threads=1).fit_batches(iter(in_batches(texts, labels)))
    same(whole, flowing)


@pytest.mark.parametrize("stage", ["reading", "training"])
def test_an_interrupted_fit_goes_on_to_the_same_bits(stage, tmp_path, monkeypatch, small_blocks):
    texts, labels = reviews(300)
    monkeypatch.setattr(keytokens.estimators.streaming, "_EVERY", 0.0)
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
    with pytest.raises(InputError, match="differs in prior__spread, source") as caught:
        KeyTokenClassifier(prior=Prior(spread=2.0)).fit_batches([], folder=tmp_path, resume=True, source="b.csv")
    assert str(tmp_path) in str(caught.value)
    # without `resume` it begins anew, whatever lies there
    KeyTokenClassifier(prior=Prior(spread=2.0)).fit_batches(in_batches(texts, labels), folder=tmp_path, source="b.csv")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Folders of two fits that saved their state at every step; the second one had the labels the other way round."""
    texts, labels = reviews(60)
    place = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keytokens.estimators.streaming, "_EVERY", 0.0)
        for name, y in (("one", labels), ("other", labels[::-1])):
            KeyTokenClassifier().fit_batches(in_batches(texts, y), folder=place / name, source="0")
    return place


@pytest.fixture
def work(finished, tmp_path):
    """A copy of the first one."""
    return shutil.copytree(finished / "one", tmp_path / "work")


def go_on(folder):
    KeyTokenClassifier().fit_batches([], folder=folder, resume=True, source="0")


def check_damaged(folder):
    with pytest.raises(InputError, match=r"is damaged\. Begin anew"):
        go_on(folder)


@pytest.mark.parametrize("name", ["counts.json", "gathered.safetensors", "indices", "data", "state.safetensors"])
def test_a_changed_number_is_noticed(name, work):
    """Numbers that are as good as others would end in another model, and nobody would know. A pipe would never end."""
    file = work / name
    content = file.read_bytes()
    places = [len(content) - 4, len(content) // 2 & ~3]  # of a vector, a table or a record
    places += [content.index(word) + len(word) for word in (b'"tokens": ', b'\\"evaluations\\": ') if word in content]
    damaged = [content[: len(content) // 2]]
    damaged += [content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] for at in places]
    for bad in damaged:
        file.write_bytes(bad)
        check_damaged(work)
    file.unlink()
    os.mkfifo(file)
    check_damaged(work)
    file.unlink()
    file.write_bytes(content)
    go_on(work)


def test_a_state_belongs_to_its_counts(work, finished, tmp_path):
    """That of other texts is whole, and its vectors may even have the right length."""
    other = shutil.copytree(finished / "other", tmp_path / "other")
    shutil.copy(other / "state.safetensors", work)
    check_damaged(work)
    go_on(other)
    (other / "counts.json").unlink()  # gathered again, they are the same: the state may stay
    texts, labels = reviews(60)
    KeyTokenClassifier().fit_batches(in_batches(texts, labels[::-1]), folder=other, resume=True, source="0")


def test_a_record_is_unsealed_only_as_it_was_sealed():
    record = {"key": {"a": "1", "b": None}, "classes": [0.5, "\ud800"], "tokens": 3}
    content = sealed(record)
    assert unsealed(content) == record
    assert unsealed(content.replace(b" ", b"\n ")) == record  # the same values
    damaged = [content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] for at in range(len(content))]
    for bad in [*damaged, b"[" * 100_000, b"[]", b"{}", b"7", json.dumps(record).encode()]:
        with suppress(ValueError):
            assert unsealed(bad) == record, bad


MANY = 10**9  # tokens


def kept(memory: int, n_classes: int, n_texts: int, n_tokens: int = MANY) -> int:
    return Budget(memory, 2, 1.0, n_texts, n_classes).keep(n_tokens)


def test_what_a_budget_keeps():
    gigabyte = 10**9
    assert kept(gigabyte, 2, 1000) > kept(LEAST_MEMORY, 2, 1000) > 100_000
    assert kept(gigabyte, 20, 1000) < kept(gigabyte, 2, 1000) / 3
    assert kept(gigabyte, 2, 5_000_000) < kept(gigabyte, 2, 1000) / 1.5
    assert kept(gigabyte, 2, 1000, 50) == 50  # all there are


def test_a_budget_says_what_it_drops(monkeypatch, tmp_path):
    """To who asks the model, also after it was saved; what is kept is what `max_tokens` keeps."""
    texts, labels = reviews(200)
    whole = KeyTokenClassifier().fit_batches(in_batches(texts, labels), memory=10**9)
    assert whole.dropped_ is None
    n_tokens = len(whole.vocabulary_)
    monkeypatch.setattr(keytokens.estimators.streaming, "_LEAST_TOKENS", 100)
    monkeypatch.setattr(keytokens.estimators.streaming, "_FIXED", 10**9 - 60_000)
    bounded = KeyTokenClassifier().fit_batches(in_batches(texts, labels), memory=10**9, folder=tmp_path / "work")
    n_kept = len(bounded.vocabulary_)
    assert 100 <= n_kept < n_tokens
    assert bounded.dropped_ is not None
    assert (bounded.dropped_["tokens"], bounded.dropped_["of"]) == (n_tokens - n_kept, n_tokens)
    assert bounded.dropped_["why"].startswith("a memory of 1GB; all tokens take about 1.")
    same(KeyTokenClassifier(max_tokens=n_kept).fit(texts, labels), bounded)
    bounded.save(tmp_path / "model")
    assert load(tmp_path / "model").dropped_ == bounded.dropped_
    again = KeyTokenClassifier().fit_batches([], memory=10**9, folder=tmp_path / "work", resume=True)
    assert again.dropped_ == bounded.dropped_
    assert bounded.fit(texts, labels).dropped_ is None


def test_a_budget_that_holds_nothing_useful():
    """Refused before training, with the least that would do."""
    with pytest.raises(
        ValueError, match=r"`memory` must hold 20,000 texts of 5,000 classes with 1,000 tokens"
    ) as error:
        kept(10**9, 5_000, 20_000, 30_003)
    (least,) = re.findall(r"Give ([\d.]+)GB or more", str(error.value))
    assert kept(int(float(least) * 10**9), 5_000, 20_000, 30_003) >= 1_000


def test_a_share_of_the_texts_is_refused_where_all_would_be():
    """Four fifths, for the score, would do with less than the fit to all that comes after it."""
    of_all = Budget(2 * 10**9, 2, 1.0, 20_000, 5_000).keep(30_003)
    assert 0.7 * of_all < Budget(2 * 10**9, 2, 0.8, 16_000, 4_990).keep(30_003) <= of_all
    assert Budget(1_400_000_000, 2, 1.0, 16_000, 5_000).keep(30_003) >= 1_000
    with pytest.raises(ValueError, match="must hold 20,000 texts"):
        Budget(1_530_000_000, 2, 0.8, 16_000, 4_990).keep(30_003)


def test_more_n_grams_than_a_budget_can_count(monkeypatch):
    monkeypatch.setattr(keytokens.estimators.streaming, "_A_GRAM", 10**7)
    with pytest.raises(
        ValueError, match=r"`memory` must hold \d+ different n-grams while they are counted; saw 500MB\. Give \d"
    ):
        KeyTokenClassifier().fit_batches(in_batches(*reviews(200)), memory=LEAST_MEMORY)


def test_the_advice_leaves_room_for_what_comes_later():
    """For n-grams that are longer, and for the texts that are held out now."""
    budget = Budget(500_000_000, 2, share=0.8)
    budget.grams(100_000, longer=2)
    with pytest.raises(ValueError, match=r"hold 6,100,000 different n-grams while .* Give 1\.2GB or more"):
        budget.grams(6_000_000, longer=1)  # 60 bytes for each of 12.1 million, 8 of 10 texts being here
    with pytest.raises(ValueError, match=r"hold 1,300,000 different words; saw 500MB\. Give 525MB or more"):
        budget.words(1_300_000)


@pytest.mark.parametrize("n_words", [20_000, 5_010])
def test_words_beyond_the_budget_are_counted_by_a_sample(monkeypatch, n_words):
    """Refused once all were read, for only then is it known what they take; never taken for all words."""
    monkeypatch.setattr(ngrams, "_WAITING", 1000)
    monkeypatch.setattr(words, "CHARACTERS", 1000)
    monkeypatch.setattr(keytokens.estimators.streaming, "_A_WORD", 60_000)  # 5,000 words
    merged: list[int] = []
    monkeypatch.setattr(ngrams, "factorise", lambda keys: (merged.append(len(keys)), factorise(keys))[1])
    texts = [" ".join(f"w{i}" for i in range(at, at + 30)) for at in range(0, n_words, 30)]
    with pytest.raises(ValueError, match="different words; saw 500MB") as error:
        KeyTokenClassifier().fit_batches(in_batches(texts, [i % 2 for i in range(len(texts))]), memory=LEAST_MEMORY)
    (said,) = re.findall(r"must hold ([\d,]+) different", str(error.value))
    assert max(merged) < 12_000
    assert n_words * 0.9 < int(said.replace(",", "")) < n_words * 1.1


def test_a_text_too_long_for_the_budget():
    """Found while it is read, before a file is written."""
    batches = [(["a b"], ["x"]), (["c", "d " * 10_000_000], ["x", "y"])]
    says = r"`memory` must be enough to read a text of 20,000,000 characters; saw 500MB\. Give 56\dMB or more"
    with pytest.raises(ValueError, match=says):
        KeyTokenClassifier(threads=2).fit_batches(batches, memory=LEAST_MEMORY)


@pytest.mark.parametrize(
    "batches, options, says",
    [
        ([(["a b"], ["x", "y"])], {}, "one entry for each of the 1 texts"),
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


def test_the_record_of_a_run_is_readable(work):
    record = json.loads((work / "counts.json").read_text())
    assert record["key"]["source"] == "0"
    assert record["classes"] == ["neg", "pos"]


def test_counts_that_name_no_token_are_not_trained_on(work):
    """Products of sparse matrices do not check their indices: a wrong one would read memory that is not theirs.

    The checksums are mended here, so that they are not what refuses.
    """
    record = unsealed((work / "counts.json").read_bytes())

    def mend(name: str, content: bytes) -> None:
        (work / name).write_bytes(content)
        record["files"][name] = hashlib.sha256(content).hexdigest()
        (work / "counts.json").write_bytes(sealed(record))

    for name, value in (("indices", np.int32(2**30)), ("indices", np.int32(-1)), ("data", np.float32(np.nan))):
        content = (work / name).read_bytes()
        mend(name, content[:40] + value.tobytes() + content[44:])
        check_damaged(work)
        mend(name, content)
