"""Model directories that are damaged, or made by somebody who means harm (see docs/reliability.md)."""

import hashlib
import json
import os
import resource
import shutil
import signal
import sys
import zlib

import numpy as np
import pytest

import keytokens as kt
from keytokens.app.cli.app import run
from keytokens.app.explorer.model import packed_model

from ..corpus import reviews
from .forging import arrays_of, data_file, forge, forge_arrays, packed, record_of, refused


@pytest.fixture(scope="module")
def clf():
    return kt.KeyTokenClassifier(threads=1).fit(*reviews(60))


@pytest.fixture(scope="module")
def models(clf, tmp_path_factory):
    """A folder of each kind of model."""
    place = tmp_path_factory.mktemp("models")
    bags = [np.array(rows, float) for rows in ([[0, 1], [3, 0]], [[0, 1]], [[3, 0], [0, 1]], [[0, 1], [0, 1]])]
    bag = kt.BagClassifier(n_landmarks=3, max_iter=3).fit(bags, ["y", "n", "y", "n"])
    made = {"plain": clf, "pruned": clf.pruned(60), "packed": clf.compressed(10**6), "bags": bag}
    for name, model in made.items():
        model.save(place / name)
    return place


@pytest.fixture
def saved(models, tmp_path):
    """A folder of a model of this kind, to be damaged."""
    return lambda kind="plain": shutil.copytree(models / kind, tmp_path / "model")


@pytest.fixture(autouse=True)
def limited():
    """What hangs is ended, and fails."""

    def rings(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, rings)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


PARTS = [("plain", "numbers"), ("plain", "words"), ("packed", "numbers"), ("packed", "words"), ("bags", "numbers")]


@pytest.mark.parametrize("kind, part", PARTS)
def test_any_changed_byte_is_seen(saved, kind, part):
    folder = saved(kind)
    file = data_file(folder, part)
    good = file.read_bytes()
    rng = np.random.RandomState(0)
    for place in rng.randint(len(good), size=25).tolist():
        bad = bytearray(good)
        bad[place] ^= 1 << rng.randint(8)
        file.write_bytes(bytes(bad))
        refused(folder, "checksum is wrong")
    file.write_bytes(good[:-1])
    refused(folder, "size")
    file.unlink()
    refused(folder, "is missing")


def test_saving_deletes_no_file_outside(saved, clf):
    """The replaced `model.json` names the files to delete: only those that a model may have, and where it has them."""
    folder = saved()
    victim = folder.parent / "precious.txt"
    victim.write_text("mine")
    record = record_of(folder)
    record["files"]["more"] = {"name": "../precious.txt", "size": 4, "sha256": ""}
    (folder / "model.json").write_text(json.dumps(record))
    refused(folder, "does not name the files that a model of its kind has")
    clf.save(folder)
    assert victim.read_text() == "mine"
    kt.load(folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes and devices")
@pytest.mark.parametrize("place", ["model.json", "numbers", "words"])
@pytest.mark.parametrize("what", ["pipe", "link to a pipe", "link to a device", "link to itself", "folder", "link out"])
def test_what_is_no_plain_file_is_not_read(saved, place, what):
    """A pipe would hold the reader for ever, /dev/zero has no end, a link may lead anywhere."""
    folder = saved()
    record = record_of(folder)
    file = folder / (place if place == "model.json" else record["files"][place]["name"])
    if place != "model.json":
        record["files"][place] |= {"size": 0, "sha256": hashlib.sha256(b"").hexdigest()}
        (folder / "model.json").write_text(json.dumps(record))
    outside = folder.parent / "outside"
    file.rename(outside)
    if what == "pipe":
        os.mkfifo(file)
    elif what == "folder":
        file.mkdir()
    else:
        os.mkfifo(folder.parent / "pipe")
        targets = {"link to a pipe": folder.parent / "pipe", "link to a device": "/dev/zero", "link out": outside}
        file.symlink_to(targets.get(what, file))
    refused(folder)


# The record ----------------------------------------------------------------------------------------------------------

FIT = "its contents do not fit together"
VALUES = [  # the kind of model, where in the record, the other value, and why it is refused
    ("plain", "format", 99, "format 99 is unknown, this version reads format 3. Save it again."),
    ("plain", "format", 1, "format 1 is unknown, this version reads format 3. Save it again."),
    ("plain", "kind", "Exploit", "its kind 'Exploit' is unknown"),
    ("packed", "kind", "BagClassifier", "does not name the files that a model of its kind has"),
    ("bags", "kind", "KeyTokenClassifier", "does not name the files that a model of its kind has"),
    ("plain", "files/numbers/name", "../../etc/passwd", "model.json names no proper numbers file"),
    ("plain", "files/numbers/size", 2**60, "does not have the size that model.json gives"),
    ("plain", "files/words/sha256", "0" * 64, "is damaged (its checksum is wrong)"),
    ("plain", "classes", ["a", "b", "c"], FIT),
    ("plain", "classes", ["a", "a"], FIT),
    ("bags", "classes", ["a", "b", "c"], FIT),
    ("bags", "feature_names", ["one"], "is not a readable"),
    ("plain", "options/counts", "tfidf", FIT),
    ("plain", "options/__class__", 1, FIT),
]
VALUES += [
    ("plain", "dropped", value, "dropped must have two numbers of tokens and a reason")
    for value in (7, {}, {"tokens": 1, "of": 2}, {"tokens": -1, "of": 2, "why": ""})
]
VALUES += [
    ("plain", place, value, "is not a readable")
    for place, values in {
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
    }.items()
    for value in values
]


@pytest.mark.parametrize("kind, place, value, why", VALUES)
def test_other_values_in_the_record(saved, kind, place, value, why):
    folder = saved(kind)
    record = inner = record_of(folder)
    *path, last = place.split("/")
    for name in path:
        inner = inner[name]
    inner[last] = value
    (folder / "model.json").write_text(json.dumps(record))
    refused(folder, why)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff\xfe", b"[" * 100_000])
def test_damaged_json(saved, content):
    folder = saved()
    (folder / "model.json").write_bytes(content)
    refused(folder)


@pytest.mark.parametrize("more", ['"format": 1', '"more": NaN', '"more": [-Infinity]', '"more": 1e999'])
def test_json_that_is_none(saved, more):
    """A name twice, and numbers that are none; plain JSON has neither."""
    folder = saved()
    text = (folder / "model.json").read_text().rstrip().removesuffix("}")
    (folder / "model.json").write_text(f"{text}, {more}}}")
    refused(folder, "model.json is not valid JSON")


# Arrays under a record that vouches for them -------------------------------------------------------------------------


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
    "moved": lambda x: x + 1,
    "all one": lambda x: x * 0,
    "too few": lambda x: x[:-1],
    "too wide": lambda x: x.astype(np.int64),
}


# Of a packed model: the array, how it is changed, and why it is refused.
ODD = [
    ("words", lambda x: np.append(x, x[-1:] * 0 + 10), "words must be distinct"),
    ("words", lambda x: np.append(x, np.frombuffer(b"\nthe\nthe", np.uint8)), "words must be distinct"),
    ("words", lambda x: np.where(x == ord("h"), ord(" "), x).astype(np.uint8), "without spaces"),
    ("words", lambda x: x.astype(np.int32), "not a text"),
    ("words", lambda x: np.append(x, np.uint8(255)), "utf-8"),
    ("children_2", lambda x: x[:, :-1], "do not fit together"),
    ("children_2", lambda x: x + np.uint8(1), "do not fit together"),
    ("gaps_2", lambda x: np.maximum(x, 200), "unknown word"),
    ("gaps_2", lambda x: x[0], "planes of bytes"),
    ("gaps_2", lambda x: np.repeat(x[:1], 5, axis=0), "planes of bytes"),
    ("gaps_2", lambda x: np.concatenate([np.repeat(x[:1], 3, axis=0), x[:1] | 128]), "too large"),
    ("is_token", lambda x: x[:-1], "is_token"),
    ("grid", lambda x: x + 1000, "out of range"),
    ("grid", lambda x: (x - [0, 0, 5000]).astype(np.int32), "out of range"),
    ("grid", lambda x: (x - [0, 0, -5000]).astype(np.int32), "out of range"),
    ("grid", lambda x: x[:2], "wrong shape"),
]


def changed(name, change):
    return lambda arrays: arrays | {name: np.ascontiguousarray(change(arrays[name]))}


def long_token(arrays):
    """Every further word of the longest token costs a step, wherever texts are read."""
    empty = np.zeros((1, 0), np.uint8)
    return {f"{name}_{order}": empty for name in ("children", "gaps") for order in range(2, 1500)} | arrays


def forgeries():
    """A name, the model, the part that is forged, what is done to its arrays, and why they are refused."""
    out_of_range = "{} is not finite, or out of range"
    for name in ("attention", "values", "intercept", "empty", "log_sink", "mean_attention"):
        for number in (1e200, -1e308, np.nan, np.inf):
            if name != "log_sink" or not number < 0:  # -inf is no sink at all, and what comes near it is none either
                yield f"{name} {number}", "plain", "numbers", first(name, number), out_of_range.format(name)
    for name, number in (("log_sink", np.nan), ("log_sink", np.inf), ("intercept", np.nan)):
        yield f"{name} {number}, packed", "packed", "numbers", first(name, number), f"{name} is not finite"
    yield "amounts below 0", "plain", "numbers", first("class_counts", -1.0), out_of_range.format("class_counts")
    for name, number in (("scale", 0.0), ("scale", -1.0), ("mean", 1e200), ("q", 1e100)):
        yield f"{name} {number} of bags", "bags", "numbers", first(name, number), out_of_range.format(name)
    for text in ("{}\n", "\n{}", "a b\n{}", "{}\n\na", "a\na\n{}"):
        yield f"words {text!r}", "plain", "words", words(text), "the words must be distinct, without spaces"
    yield "words that are no text", "plain", "words", words("{}\udfff"), "utf-8"
    for name, change in COLUMNS.items():
        yield f"columns {name}", "pruned", "words", changed("columns", change), "columns are not those of the tokens"
    for number, (name, change, why) in enumerate(ODD):
        yield f"odd {name} {number}", "packed", "numbers" if name == "grid" else "words", changed(name, change), why
    for kind in ("plain", "packed"):
        yield f"a long token, {kind}", kind, "words", long_token, "a token has more than 1000 words"


FORGED = {name: row for name, *row in forgeries()}


@pytest.mark.parametrize("kind, part, change, why", FORGED.values(), ids=FORGED)
def test_forged_arrays(saved, kind, part, change, why):
    folder = saved(kind)
    forge_arrays(folder, part, change(arrays_of(folder, part)))
    refused(folder, why)


@pytest.mark.parametrize("kind, part", PARTS)
def test_arrays_that_do_not_fit(saved, kind, part):
    """Every array missing, cut, empty, of another shape or type, and one that nobody asked for."""
    folder = saved(kind)
    arrays = arrays_of(folder, part)
    more = [("more", np.zeros(1)), ("grid" if part == "words" else "words", np.zeros(1))]
    for name, array in [*arrays.items(), *more]:
        changes = [array.astype(np.int64), array[None], array[:0]]
        if name != "words" and array.size:  # a word less a letter is a word
            changes.append(array[..., :-1])
        others = {key: value for key, value in arrays.items() if key != name}
        forged = [others | {name: np.ascontiguousarray(one)} for one in changes if one.shape != array.shape or one.size]
        for one in [*forged, *([others] if name in arrays else [])]:
            forge_arrays(folder, part, one)
            refused(folder)


def test_amounts_of_which_a_page_has_no_number(saved, monkeypatch):
    """The largest number of 32 bits is no float32: clipped to it, a count would still be too large for the page."""
    folder = saved()
    arrays = arrays_of(folder, "numbers")
    arrays["class_counts"][0, 0] = 1e30
    forge_arrays(folder, "numbers", arrays)
    monkeypatch.setattr("keytokens.app.explorer.model.pack", lambda facts, arrays: arrays)
    assert packed_model(kt.load(folder))["class_counts"][0, 0] == 2**32 - 1


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    clf = kt.KeyTokenClassifier(threads=1).fit(["a b", "b c"], [0, 1])
    clf.vocabulary_ = type(clf.vocabulary_).from_tokens([" ".join(["a"] * 1001)])
    with pytest.raises(kt.InputError, match="`ngrams` must be at most 1000 words"):
        clf.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


# Packed files --------------------------------------------------------------------------------------------------------

PACKINGS = [
    lambda good: b"",
    lambda good: good[:7],
    lambda good: good[:-1],
    lambda good: good + b"x",
    lambda good: (int.from_bytes(good[:8], "little") - 1).to_bytes(8, "little") + good[8:],
    lambda good: (int.from_bytes(good[:8], "little") + 1).to_bytes(8, "little") + good[8:],
    lambda good: good[:8] + bytes(len(good) - 8),
    lambda good: packed(b"12345"),
]


@pytest.mark.parametrize("change", PACKINGS)
@pytest.mark.parametrize("part", ["numbers", "words"])
def test_forged_packing(saved, part, change):
    folder = saved("packed")
    forge(folder, part, change(data_file(folder, part).read_bytes()))
    refused(folder)


def test_a_file_swells_two_hundred_times_at_most(saved, monkeypatch):
    """Deflate can make a thousand bytes of one; the declared size is judged, by the file's, before anything swells."""
    folder = saved("packed")
    small = data_file(folder, "numbers").read_bytes()[8:]
    bomb = zlib.compress(bytes(100 * 2**20), 9)
    monkeypatch.setattr("keytokens.estimators.saving.zlib.decompressobj", None)
    for size, content in ((256 * 2**20 + 1, small), (2**60, small), (100 * 2**20, bomb)):
        forge(folder, "numbers", size.to_bytes(8, "little") + content)
        refused(folder, "inflate to far too much")


def test_no_more_is_inflated_than_was_declared(saved):
    """What would swell to 256 megabytes stops after the bytes that it owned up to."""
    folder = saved("packed")
    deflate = zlib.compressobj(1)
    bomb = b"".join(deflate.compress(bytes(2**20)) for _ in range(256)) + deflate.flush()
    forge(folder, "numbers", (1000).to_bytes(8, "little") + bomb)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(folder, "does not inflate to the size that it declares")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < (2**26 if sys.platform == "darwin" else 2**16)  # a quarter of it; bytes there, kilobytes here


# What a model says ---------------------------------------------------------------------------------------------------


def test_labels_and_tokens_that_speak_to_terminals_and_pages(tmp_path, capsys):
    """A model from elsewhere may hold anything as labels and tokens: they are shown, never obeyed."""
    labels = ["\x1b[2J<script>alert(1)</script>", "pos\u202e\n"]
    texts = ["great film", "great <b>", "dull plot", "dull"]
    folder = tmp_path / "model"
    kt.KeyTokenClassifier(threads=1).fit(texts, [labels[i // 2] for i in range(4)]).save(folder)
    arrays = arrays_of(folder, "words")
    spoken = arrays["words"].tobytes().replace(b"plot", b"\x1b[31m<script>alert(1)")
    forge_arrays(folder, "words", arrays | {"words": np.frombuffer(spoken, np.uint8)})
    (tmp_path / "t.csv").write_text("text,label\ngreat film,a\n\x1b[31m<script>alert(1) dull,b\n")
    assert run(["explain", str(folder), "a great \x1b[31m film", "--html", str(tmp_path / "why.html")]) == 0
    assert run(["report", str(folder), str(tmp_path / "t.csv"), "-o", str(tmp_path / "report.html")]) == 0
    said = "".join(capsys.readouterr())
    assert all(letter.isprintable() or letter == "\n" for letter in said)
    for page in ("why.html", "report.html"):
        assert "<script>alert" not in (tmp_path / page).read_text("utf-8")
