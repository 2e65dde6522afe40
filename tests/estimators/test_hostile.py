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
from keytokens.app.explorer.model import packed_model

from ..corpus import reviews


@pytest.fixture(scope="module")
def clf():
    return kt.KeyTokenClassifier(threads=1).fit(*reviews(60))


@pytest.fixture(scope="module")
def models(clf):
    bags = [np.array(rows, float) for rows in ([[0, 1], [3, 0]], [[0, 1]], [[3, 0], [0, 1]], [[0, 1], [0, 1]])]
    bag = kt.BagClassifier(n_landmarks=3, max_iter=3).fit(bags, ["y", "n", "y", "n"])
    return {"plain": clf, "pruned": clf.pruned(60), "packed": clf.compressed(10**6), "bags": bag}


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


VALUES = {
    "history": ["abc", [[1.0], [2.0, 3.0]], ["nan"], [10**400], {"a": 1}],
    "n_iter": [None, [1], True],
    "status": [5],
    "classes": [["a", 1], [0, True], ["a", "b\0"], [["a"], ["b"]], {"a": 1, "b": 2}],
    "files": [[]],
    "options": [
        *([], {"ngrams": {"pairs": 5}}, {"class_weight": {"sink": 1}}, {"prior": 5}),
        *({"prior": prior} for prior in ({"sinks": 1}, {"sink": -1}, {"tol": [0.1]})),
        {"\x1b[31m\n\u202e" + "x" * 5000: 1},  # a name goes into the message: without what a terminal would obey
    ],
}


@pytest.mark.parametrize("name, value", [(name, value) for name, values in VALUES.items() for value in values])
def test_values_of_another_kind(saved, name, value):
    (saved / "model.json").write_text(json.dumps({**record_of(saved), name: value}))
    refused(saved)


@pytest.mark.parametrize("more", ['"format": 1', '"more": NaN', '"more": [-Infinity]', '"more": 1e999'])
def test_json_that_is_none(saved, more):
    """A name twice, and numbers that are none; plain JSON has neither."""
    text = (saved / "model.json").read_text().rstrip().removesuffix("}")
    (saved / "model.json").write_text(f"{text}, {more}}}")
    refused(saved, "model.json is not valid JSON")


# Arrays under a record that vouches for them


def first(name, number):
    """The first number of an array is another one."""

    def change(arrays):
        array = arrays[name].astype(np.float64)
        array.reshape(-1)[0] = number
        return {**arrays, name: array}

    return change


def words(text):
    """Other words around those of the model."""

    def change(arrays):
        whole = text.encode("utf-8", "surrogatepass").replace(b"{}", arrays["words"].tobytes())
        return {**arrays, "words": np.frombuffer(whole, np.uint8)}

    return change


COLUMNS = {
    "moved": lambda arrays: {**arrays, "columns": arrays["columns"] + 1},
    "all one": lambda arrays: {**arrays, "columns": arrays["columns"] * 0},
    "too few": lambda arrays: {**arrays, "columns": arrays["columns"][:-1]},
    "too wide": lambda arrays: {**arrays, "columns": arrays["columns"].astype(np.int64)},
}


def long_token(arrays):
    """Every further word of the longest token costs a step, wherever texts are read."""
    empty = np.zeros((1, 0), np.uint8)
    return {f"{name}_{order}": empty for name in ("children", "gaps") for order in range(2, 1500)} | arrays


def forgeries():
    """A name, the model, the part that is forged, what is done to its arrays, and why they are refused."""
    out_of_range = "{} is not finite, or out of range"
    for name in ("attention", "values", "intercept", "empty", "log_sink", "mean_attention"):
        for number in (1e200, -1e308, np.nan):
            if name != "log_sink" or not number < 0:  # -inf is no sink at all, and what comes near it is none either
                yield f"{name} {number}", "plain", "numbers", first(name, number), out_of_range.format(name)
    yield "amounts below 0", "plain", "numbers", first("class_counts", -1.0), out_of_range.format("class_counts")
    for name, number in (("scale", 0.0), ("scale", -1.0), ("mean", 1e200), ("q", 1e100)):
        yield f"{name} {number} of bags", "bags", "numbers", first(name, number), out_of_range.format(name)
    for text in ("{}\n", "\n{}", "a b\n{}", "{}\n\na", "a\na\n{}"):
        yield f"words {text!r}", "plain", "words", words(text), "the words must be distinct, without spaces"
    yield "words that are no text", "plain", "words", words("{}\udfff"), "utf-8"
    for name, change in COLUMNS.items():
        yield f"columns {name}", "pruned", "words", change, "columns are not those of the tokens"
    for kind in ("plain", "packed"):
        yield f"a long token, {kind}", kind, "words", long_token, "a token has more than 1000 words"


FORGED = {name: row for name, *row in forgeries()}


@pytest.mark.parametrize("kind, part, change, why", FORGED.values(), ids=FORGED)
def test_forged_arrays(models, tmp_path, kind, part, change, why):
    models[kind].save(tmp_path / "model")
    content = content_of(tmp_path / "model", part)
    whole = save_arrays(change(load_arrays(zlib.decompress(content[8:]) if kind == "packed" else content)))
    packed = len(whole).to_bytes(8, "little") + zlib.compress(whole)
    forge(tmp_path / "model", part, packed if kind == "packed" else whole)
    refused(tmp_path / "model", why)


def test_amounts_of_which_a_page_has_no_number(saved, monkeypatch):
    """The largest number of 32 bits is no float32: clipped to it, a count would still be too large for the page."""
    arrays = load_arrays(content_of(saved, "numbers"))
    arrays["class_counts"][0, 0] = 1e30
    forge(saved, "numbers", save_arrays(arrays))
    monkeypatch.setattr("keytokens.app.explorer.model.pack", lambda facts, arrays: arrays)
    assert packed_model(kt.load(saved))["class_counts"][0, 0] == 2**32 - 1


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    clf = kt.KeyTokenClassifier(threads=1).fit(["a b", "b c"], [0, 1])
    clf.vocabulary_ = type(clf.vocabulary_).from_tokens([" ".join(["a"] * 1001)])
    with pytest.raises(kt.InputError, match="`ngrams` must be at most 1000 words"):
        clf.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_file_swells_two_hundred_times_at_most(models, tmp_path):
    """Deflate can make a thousand bytes of one; the declared size, however honest, is judged by the file's."""
    models["packed"].save(tmp_path / "model")
    bomb = bytes(100 * 2**20)
    forge(tmp_path / "model", "numbers", len(bomb).to_bytes(8, "little") + zlib.compress(bomb, 9))
    refused(tmp_path / "model", "inflate to far too much")


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
