"""Model directories made by somebody who means harm: what was found, one test each (see docs/reliability.md)."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import zlib
from contextlib import contextmanager

import numpy as np
import pytest
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

import keytokens as kt
from keytokens.app.cli.app import run

from ..corpus import reviews


@pytest.fixture(scope="module")
def clf():
    return kt.KeyTokenClassifier(threads=1).fit(*reviews(60))


@pytest.fixture
def saved(clf, tmp_path):
    clf.save(tmp_path / "model")
    return tmp_path / "model"


def record_of(folder):
    return json.loads((folder / "model.json").read_text())


def forge(folder, part, content):
    """Another data file under a record that vouches for it."""
    record = record_of(folder)
    entry = record["files"][part]
    (folder / entry["name"]).write_bytes(content)
    entry |= {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (folder / "model.json").write_text(json.dumps(record))


def content_of(folder, part):
    return (folder / record_of(folder)["files"][part]["name"]).read_bytes()


@contextmanager
def within(seconds):
    """What hangs is ended, and fails."""

    def rings(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, rings)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def refused(folder, why="is not a readable keytokens model"):
    with within(30), pytest.raises(kt.ModelError, match=why) as error:
        kt.load(folder)
    assert str(error.value).isprintable()


def test_saving_deletes_no_file_outside(saved, clf):
    """The replaced `model.json` names the files to delete: only those that a model may have, and where it has them."""
    victim = saved.parent / "precious.txt"
    victim.write_text("mine")
    record = record_of(saved)
    record["files"]["more"] = {"name": "../precious.txt", "size": 4, "sha256": ""}
    (saved / "model.json").write_text(json.dumps(record))
    refused(saved, "does not name the files that a model of its kind has")
    clf.save(saved)
    assert victim.read_text() == "mine"
    kt.load(saved)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes and devices")
@pytest.mark.parametrize("place", ["model.json", "numbers", "words"])
@pytest.mark.parametrize("what", ["pipe", "link to a pipe", "link to a device", "link to itself", "folder", "link out"])
def test_what_is_no_plain_file_is_not_read(saved, place, what):
    """A pipe would hold the reader for ever, /dev/zero has no end, a link may lead anywhere."""
    record = record_of(saved)
    file = saved / (place if place == "model.json" else record["files"][place]["name"])
    if place != "model.json":
        record["files"][place] |= {"size": 0, "sha256": hashlib.sha256(b"").hexdigest()}
        (saved / "model.json").write_text(json.dumps(record))
    outside = saved.parent / "outside"
    file.rename(outside)
    if what == "pipe":
        os.mkfifo(file)
    elif what == "folder":
        file.mkdir()
    else:
        os.mkfifo(saved.parent / "pipe")
        targets = {"link to a pipe": saved.parent / "pipe", "link to a device": "/dev/zero", "link out": outside}
        file.symlink_to(targets.get(what, file))
    refused(saved)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("history", "abc"),
        ("history", [[1.0], [2.0, 3.0]]),
        ("history", ["nan"]),
        ("history", [10**400]),
        ("history", {"a": 1}),
        ("n_iter", None),
        ("n_iter", [1]),
        ("n_iter", True),
        ("status", 5),
        ("classes", ["a", 1]),
        ("classes", [0, True]),
        ("classes", ["a", "b\0"]),
        ("classes", [["a"], ["b"]]),
        ("classes", {"a": 1, "b": 2}),
        ("options", []),
        ("options", {"ngrams": {"pairs": 5}}),
        ("options", {"prior": 5}),
        ("options", {"prior": {"sinks": 1}}),
        ("options", {"prior": {"sink": -1}}),
        ("options", {"prior": {"tol": [0.1]}}),
        ("options", {"class_weight": {"sink": 1}}),
        ("files", []),
    ],
)
def test_values_of_another_kind(saved, name, value):
    (saved / "model.json").write_text(json.dumps({**record_of(saved), name: value}))
    refused(saved)


@pytest.mark.parametrize("more", ['"format": 1', '"more": NaN', '"more": [-Infinity]', '"more": 1e999'])
def test_json_that_is_none(saved, more):
    """A name twice, and numbers that are none; plain JSON has neither."""
    text = (saved / "model.json").read_text().rstrip().removesuffix("}")
    (saved / "model.json").write_text(f"{text}, {more}}}")
    refused(saved, "model.json is not valid JSON")


@pytest.mark.parametrize("name", ["attention", "values", "intercept", "empty", "log_sink", "mean_attention"])
@pytest.mark.parametrize("number", [1e200, -1e308, np.nan])
def test_numbers_that_would_overflow(saved, name, number):
    if name == "log_sink" and number < 0:
        return  # -inf is no sink at all, and what comes near it is none either
    arrays = load_arrays(content_of(saved, "numbers"))
    arrays[name] = arrays[name].astype(np.float64)
    arrays[name].reshape(-1)[0] = number
    forge(saved, "numbers", save_arrays(arrays))
    refused(saved, f"{name} is not finite, or out of range")


def test_amounts_of_which_a_page_has_no_number(saved, monkeypatch):
    """The largest number of 32 bits is no float32: clipped to it, a count would still be too large for the page."""
    arrays = load_arrays(content_of(saved, "numbers"))
    arrays["class_counts"][0, 0] = 1e30
    forge(saved, "numbers", save_arrays(arrays))
    monkeypatch.setattr("keytokens.app.explorer.model.pack", lambda facts, arrays: arrays)
    assert kt.load(saved).page_model().packed()["class_counts"][0, 0] == 2**32 - 1


def test_amounts_below_zero(saved):
    arrays = load_arrays(content_of(saved, "numbers"))
    forge(saved, "numbers", save_arrays(arrays | {"class_counts": -arrays["class_counts"] - 1}))
    refused(saved, "class_counts is not finite, or out of range")


@pytest.mark.parametrize("words", ["{}\n", "\n{}", "a b\n{}", "{}\n\na", "a\na\n{}", "{}\udfff"])
def test_words_that_are_none(saved, words):
    arrays = load_arrays(content_of(saved, "words"))
    text = words.encode("utf-8", "surrogatepass").replace(b"{}", arrays["words"].tobytes())
    forge(saved, "words", save_arrays(arrays | {"words": np.frombuffer(text, np.uint8)}))
    refused(saved, "utf-8" if "\udfff" in words else "the words must be distinct, without spaces")


@pytest.mark.parametrize("change", [lambda x: x + 1, lambda x: x * 0, lambda x: x[:-1], lambda x: x.astype(np.int64)])
def test_columns_that_are_none(clf, tmp_path, change):
    clf.pruned(60).save(tmp_path / "model")  # n-grams may come before words
    arrays = load_arrays(content_of(tmp_path / "model", "words"))
    forge(tmp_path / "model", "words", save_arrays(arrays | {"columns": change(arrays["columns"])}))
    refused(tmp_path / "model", "columns are not those of the tokens")


@pytest.mark.parametrize("packed", [False, True])
def test_a_token_of_many_words(clf, tmp_path, packed):
    """Every further word of the longest token costs a step, wherever texts are read."""
    (clf.compressed(10**6) if packed else clf).save(tmp_path / "model")
    content = content_of(tmp_path / "model", "words")
    arrays = load_arrays(zlib.decompress(content[8:]) if packed else content)
    empty = np.zeros((1, 0), np.uint8)
    more = {f"{name}_{order}": empty for name in ("children", "gaps") for order in range(2, 1500)}
    whole = save_arrays(more | arrays)
    forged = len(whole).to_bytes(8, "little") + zlib.compress(whole) if packed else whole
    forge(tmp_path / "model", "words", forged)
    refused(tmp_path / "model", "a token has more than 1000 words")


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    clf = kt.KeyTokenClassifier(threads=1).fit(["a b", "b c"], [0, 1])
    clf.vocabulary_ = type(clf.vocabulary_).from_tokens([" ".join(["a"] * 1001)])
    with pytest.raises(kt.InputError, match="`ngrams` must be at most 1000 words"):
        clf.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_file_swells_two_hundred_times_at_most(clf, tmp_path):
    """Deflate can make a thousand bytes of one; the declared size, however honest, is judged by the file's."""
    clf.compressed(10**6).save(tmp_path / "model")
    bomb = bytes(100 * 2**20)
    forge(tmp_path / "model", "numbers", len(bomb).to_bytes(8, "little") + zlib.compress(bomb, 9))
    refused(tmp_path / "model", "inflate to far too much")


@pytest.mark.parametrize(("name", "number"), [("scale", 0.0), ("scale", -1.0), ("mean", 1e200), ("q", 1e100)])
def test_bags_with_numbers_that_would_overflow(tmp_path, name, number):
    bags = [np.array(rows, float) for rows in ([[0, 1], [3, 0]], [[0, 1]], [[3, 0], [0, 1]], [[0, 1], [0, 1]])]
    kt.BagClassifier(n_landmarks=3, max_iter=3).fit(bags, ["y", "n", "y", "n"]).save(tmp_path / "model")
    arrays = load_arrays(content_of(tmp_path / "model", "numbers"))
    arrays[name][0] = number
    forge(tmp_path / "model", "numbers", save_arrays(arrays))
    refused(tmp_path / "model", f"{name} is not finite, or out of range")


def test_refusals_are_plain_lines(saved):
    """An option's name goes into the message: without what a terminal would obey."""
    record = record_of(saved)
    record["options"]["\x1b[31m\n\u202e" + "x" * 5000] = 1
    (saved / "model.json").write_text(json.dumps(record))
    refused(saved)


def test_labels_and_tokens_that_speak_to_terminals_and_pages(tmp_path, capsys):
    """A model from elsewhere may hold anything as labels and tokens: they are shown, never obeyed."""
    labels = ["\x1b[2J<script>alert(1)</script>", "pos\u202e\n"]
    texts = ["great film", "great <b>", "dull plot", "dull"]
    clf = kt.KeyTokenClassifier(threads=1).fit(texts, [labels[i // 2] for i in range(4)])
    clf.save(tmp_path / "model")
    arrays = load_arrays(content_of(tmp_path / "model", "words"))
    words = arrays["words"].tobytes().replace(b"plot", b"\x1b[31m<script>alert(1)")
    forge(tmp_path / "model", "words", save_arrays(arrays | {"words": np.frombuffer(words, np.uint8)}))
    (tmp_path / "t.csv").write_text("text,label\ngreat film,a\n\x1b[31m<script>alert(1) dull,b\n")
    model = str(tmp_path / "model")
    assert run(["explain", model, "a great \x1b[31m film", "--html", str(tmp_path / "why.html")]) == 0
    assert run(["report", model, str(tmp_path / "t.csv"), "-o", str(tmp_path / "report.html")]) == 0
    said = "".join(capsys.readouterr())
    assert all(letter.isprintable() or letter == "\n" for letter in said)
    for page in ("why.html", "report.html"):
        assert "<script>alert" not in (tmp_path / page).read_text("utf-8")
