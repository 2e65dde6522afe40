"""A model on disk: the same to the bit, whole or not at all, and nothing is believed without being checked."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import zlib

import numpy as np
import pytest
from safetensors.numpy import load as safetensors_load
from safetensors.numpy import save as safetensors_save

import keytokens as kt
from keytokens.estimators import saving as persist

from ..corpus import reviews, topics

PARTS = ["numbers", "words"]


@pytest.fixture(scope="module")
def clf():
    return kt.KeyTokenClassifier(class_weight={"neg": 1.0, "pos": 2.0}).fit(*reviews())


@pytest.fixture
def saved(clf, tmp_path):
    clf.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (reviews, {}),
        (reviews, {"ngrams": (1, 3), "min_df": (1, 2, 2), "counts": "log", "random_state": np.random.RandomState(0)}),
        (topics, {"prior": kt.Prior(sink=0)}),
    ],
)
def test_round_trip_is_exact(make, options, tmp_path):
    texts, labels = make()
    clf = kt.KeyTokenClassifier(**options).fit(texts, labels)
    clf.save(tmp_path / "deep" / "model")
    again = kt.load(tmp_path / "deep" / "model")
    unseen = [*make(seed=5)[0], "", "never seen"]
    np.testing.assert_array_equal(again.predict_proba(unseen), clf.predict_proba(unseen))
    np.testing.assert_array_equal(again.classes_, clf.classes_)
    assert again.classes_.dtype == clf.classes_.dtype
    assert again.vocabulary_.tokens == clf.vocabulary_.tokens
    assert again.explain(unseen[0]).to_dict() == clf.explain(unseen[0]).to_dict()
    assert again.key_tokens(5) == clf.key_tokens(5)
    kept = {name: value for name, value in clf.flat_params().items() if name != "random_state"}
    assert {name: again.flat_params()[name] for name in kept} == kept
    assert type(again.prior) is type(clf.prior)


def test_what_is_on_disk(saved, clf):
    record = json.loads((saved / "model.json").read_text())
    assert record["format"] == 3
    assert sorted(file.name for file in saved.iterdir()) == sorted(
        ["model.json", *(entry["name"] for entry in record["files"].values())]
    )
    numbers, words = (safetensors_load((saved / record["files"][part]["name"]).read_bytes()) for part in PARTS)
    np.testing.assert_array_equal(numbers["attention"], clf.attention_)
    assert words["words"].tobytes().decode("utf-8").split("\n") == list(clf.vocabulary_.words)


def test_columns_in_any_order(clf, saved, tmp_path):
    """The columns of a pruned model follow the old ones, and not the nodes."""
    pruned = clf.pruned(60)
    pruned.save(tmp_path / "pruned")
    for folder, turned in ((saved, False), (tmp_path / "pruned", True)):
        assert ("columns" in safetensors_load(packed_file(folder, "words").read_bytes())) == turned
    again = kt.load(tmp_path / "pruned")
    assert again.vocabulary_.tokens == pruned.vocabulary_.tokens
    np.testing.assert_array_equal(again.predict_proba(["great dull film"]), pruned.predict_proba(["great dull film"]))


def test_only_what_was_made_small_is_asked_whether_it_lies_on_a_grid(clf, tmp_path, monkeypatch):
    small = clf.compressed(10**6)
    asked = []
    plain = persist.pack_numbers
    monkeypatch.setattr(persist, "pack_numbers", lambda arrays: asked.append(1) or plain(arrays))
    endings = {}
    fitted_again = clf.compressed(10**6).fit(*reviews(40))
    loaded = kt.load(saved_in(small, tmp_path / "first"))
    asked.clear()
    for name, model in {
        "fitted": clf, "small": small, "loaded": loaded, "pruned": loaded.pruned(9), "fitted again": fitted_again
    }.items():  # fmt: skip
        folder = saved_in(model, tmp_path / name)
        endings[name] = {file.suffix for file in folder.iterdir()} - {".json"}, len(asked)
        np.testing.assert_array_equal(kt.load(folder).predict_proba(["great"]), model.predict_proba(["great"]))
        asked.clear()
    plainly, packed = ({".safetensors"}, 0), ({".zz"}, 1)
    expected = {"fitted": plainly, "small": packed, "loaded": packed, "pruned": packed, "fitted again": plainly}
    assert endings == expected


def saved_in(model, folder):
    model.save(folder)
    return folder


def test_numbers_that_left_their_grid_are_kept_plainly(clf, tmp_path):
    small = clf.compressed(10**6)
    small.attention_ = small.attention_ + np.float32(1e-7)
    small.save(tmp_path / "model")
    assert {file.suffix for file in (tmp_path / "model").iterdir()} == {".json", ".safetensors"}
    np.testing.assert_array_equal(kt.load(tmp_path / "model").attention_, small.attention_)


def test_what_may_not_be_inflated_is_not_deflated(clf, tmp_path, monkeypatch):
    small = clf.compressed(10**6)
    monkeypatch.setattr(persist, "_LARGEST_INFLATED", 1000)
    small.save(tmp_path / "model")
    assert {file.suffix for file in (tmp_path / "model").iterdir()} == {".json", ".safetensors"}
    again = kt.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(["great dull"]), small.predict_proba(["great dull"]))


def test_saving_again_leaves_only_the_new_files(saved, clf):
    before = set(saved.iterdir())
    clf.save(saved)
    after = set(saved.iterdir())
    assert len(after) == 3
    assert before & after == {saved / "model.json"}
    assert kt.load(saved).predict(["great"]) == clf.predict(["great"])


def test_foreign_files_are_left_alone(saved, clf):
    (saved / "notes.txt").write_text("mine")
    clf.save(saved)
    assert (saved / "notes.txt").read_text() == "mine"


class _Stop(BaseException):
    pass


@pytest.mark.parametrize("for_good", [True, False], ids=["killed", "interrupted"])
@pytest.mark.parametrize("step", range(12))
def test_stopped_at_any_step_a_model_loads(saved, clf, step, for_good, monkeypatch):
    """Every call that touches the disk is a place to stop at: killed, or interrupted with time to clean up."""
    other = kt.KeyTokenClassifier().fit(["a b", "c d"], [0, 1])
    expected, calls = clf.predict_proba(["great dull"]), 0

    def dying(real):
        def call(*args, **kwargs):
            nonlocal calls
            calls += 1
            if calls == step + 1 or (for_good and calls > step):
                raise _Stop
            return real(*args, **kwargs)

        return call

    for name in ("fsync", "replace", "unlink", "open"):
        monkeypatch.setattr(os, name, dying(getattr(os, name)))
    try:
        other.save(saved)
    except _Stop:
        monkeypatch.undo()
        loaded = kt.load(saved)
        if loaded.classes_.tolist() == ["neg", "pos"]:
            np.testing.assert_array_equal(loaded.predict_proba(["great dull"]), expected)
        else:
            assert loaded.predict(["a b"]).tolist() == [0]
    else:
        assert step >= 5, "saving touches the disk more often than that"


def test_read_only_folder(saved, clf, monkeypatch):
    """As root every folder is writable, so the system's refusal is played."""

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("keytokens.estimators.saving.write_new", refuse)
    with pytest.raises(kt.OutputError, match=r"cannot write '.*model': permission denied\. What was there before is"):
        clf.save(saved)
    monkeypatch.undo()
    assert kt.load(saved).predict(["great"]).tolist() == ["pos"]


def test_full_disk_leaves_the_old_model(saved, clf):
    """A limit on the size of files is the full disk that a test can have."""
    texts, labels = reviews(400, seed=9)
    big = kt.KeyTokenClassifier().fit(texts, labels)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        with pytest.raises(kt.OutputError, match=r"cannot write .*: file too large"):
            big.save(saved)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert len(list(saved.iterdir())) == 3
    assert kt.load(saved).predict(["great"]).tolist() == ["pos"]


def test_two_writers_and_a_reader(saved, clf):
    other = kt.KeyTokenClassifier().fit(*reviews(50, seed=4))
    known = [clf.predict_proba(["great dull"]).tolist(), other.predict_proba(["great dull"]).tolist()]
    failures: list[BaseException] = []

    def write(model):
        try:
            for _ in range(25):
                model.save(saved)
        except BaseException as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=(model,)) for model in (clf, other)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert kt.load(saved).predict_proba(["great dull"]).tolist() in known
    assert not failures
    assert kt.load(saved).predict_proba(["great dull"]).tolist() in known
    assert len(list(saved.iterdir())) == 3


@pytest.fixture
def raced(saved, clf, monkeypatch):
    """Save twice; the second save begins where the first one knows what it replaces, and has half a second to end."""
    plain, others = persist.write_whole, []

    def write_whole(path, content):
        if not others:
            others.append(threading.Thread(target=clf.save, args=(saved,)))
            others[0].start()
            others[0].join(0.5)
        plain(path, content)

    monkeypatch.setattr(persist, "write_whole", write_whole)

    def race():
        clf.save(saved)
        others[0].join()
        return len(list(saved.iterdir()))

    return race


def test_a_second_writer_leaves_no_second_copy(saved, raced):
    assert raced() == 3
    kt.load(saved)


def test_where_folders_have_no_locks_no_file_of_another_writer_is_deleted(saved, clf, raced, monkeypatch):
    """It may be about to be named: a whole model and a second copy are better than half of one."""
    monkeypatch.setattr("keytokens.base.files.fcntl", None)
    assert raced() == 5
    kt.load(saved)
    clf.save(saved)
    assert len(list(saved.iterdir())) == 5
    monkeypatch.undo()
    clf.save(saved)
    assert len(list(saved.iterdir())) == 3


def test_a_folder_that_is_removed_while_a_writer_waits(saved, clf):
    """The lock of a folder that is gone would be no lock."""
    from keytokens.base.files import locked

    said: list[str] = []

    def save():
        try:
            clf.save(saved)
        except kt.OutputError as error:
            said.append(str(error))

    with locked(saved) as alone:
        assert alone
        writer = threading.Thread(target=save)
        writer.start()
        writer.join(0.2)
        shutil.rmtree(saved)
    writer.join()
    assert said in ([], [f"cannot write '{saved}': the folder was removed at the same moment."])
    assert not said or not saved.exists()


def test_a_lock_ends_with_its_process(saved, clf):
    """Killed while it saves: the next one does not wait."""
    code = "import os, sys, keytokens.base.files as f; held = f.locked(f.Path(sys.argv[1])); "
    code += "assert held.__enter__(); os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", code, str(saved)], check=False).returncode == -signal.SIGKILL
    clf.save(saved)


def test_missing_model(tmp_path):
    with pytest.raises(kt.ModelError, match=r"load: there is no model at '.*nowhere': no such directory\."):
        kt.load(tmp_path / "nowhere")
    with pytest.raises(kt.ModelError, match=r"model\.json is missing"):
        kt.load(tmp_path)


def damage_format(record):
    record["format"] = 99


def damage_format_to_an_old_one(record):
    record["format"] = 1
    record["files"] = {"arrays": {"name": "arrays-0123456789abcdef.safetensors"}}


def damage_kind(record):
    record["kind"] = "Exploit"


def damage_name(record):
    record["files"]["numbers"]["name"] = "../../etc/passwd"


def damage_size(record):
    record["files"]["numbers"]["size"] = 2**60


def damage_checksum(record):
    record["files"]["words"]["sha256"] = "0" * 64


def damage_classes(record):
    record["classes"] = ["a", "b", "c"]


def damage_options(record):
    record["options"]["counts"] = "tfidf"


def damage_class_twice(record):
    record["classes"] = ["a", "a"]


def damage_option_names(record):
    record["options"]["__class__"] = 1


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damage_format, "format 99 is unknown, this version reads format 3. Save it again."),
        (damage_format_to_an_old_one, "format 1 is unknown, this version reads format 3. Save it again."),
        (damage_kind, "its kind 'Exploit' is unknown"),
        (damage_name, "model.json names no proper numbers file"),
        (damage_size, "does not have the size that model.json gives"),
        (damage_checksum, "is damaged (its checksum is wrong)"),
        (damage_classes, "its contents do not fit together"),
        (damage_options, "its contents do not fit together"),
        (damage_class_twice, "its contents do not fit together"),
        (damage_option_names, "its contents do not fit together"),
    ],
)
def test_damaged_record(saved, damage, message):
    record = json.loads((saved / "model.json").read_text())
    damage(record)
    (saved / "model.json").write_text(json.dumps(record))
    with pytest.raises(kt.ModelError) as refused:
        kt.load(saved)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff\xfe", b"[" * 100_000])
def test_damaged_json(saved, content):
    (saved / "model.json").write_bytes(content)
    with pytest.raises(kt.ModelError, match="is not a readable keytokens model"):
        kt.load(saved)


@pytest.mark.parametrize("part", PARTS)
def test_any_changed_byte_is_seen(saved, part):
    name = json.loads((saved / "model.json").read_text())["files"][part]["name"]
    good = (saved / name).read_bytes()
    rng = np.random.RandomState(0)
    for place in rng.randint(len(good), size=25).tolist():
        bad = bytearray(good)
        bad[place] ^= 1 << rng.randint(8)
        (saved / name).write_bytes(bytes(bad))
        with pytest.raises(kt.ModelError, match="checksum is wrong"):
            kt.load(saved)
    (saved / name).write_bytes(good[:-1])
    with pytest.raises(kt.ModelError, match="size"):
        kt.load(saved)
    (saved / name).unlink()
    with pytest.raises(kt.ModelError, match="is missing"):
        kt.load(saved)
    shutil.copy(saved / "model.json", saved / "elsewhere")
    os.symlink(saved / "elsewhere", saved / name)
    with pytest.raises(kt.ModelError, match="size"):
        kt.load(saved)


# ---- a model on its grid, deflated


@pytest.fixture
def small(clf, tmp_path):
    clf.compressed(3500).save(tmp_path / "small")
    return tmp_path / "small"


def packed_file(folder, part="numbers"):
    return folder / json.loads((folder / "model.json").read_text())["files"][part]["name"]


def repacked(folder, content, part="numbers"):
    """Other contents under a record that vouches for them: what only a forger would do."""
    record = json.loads((folder / "model.json").read_text())
    entry = record["files"][part]
    (folder / entry["name"]).write_bytes(content)
    entry |= {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (folder / "model.json").write_text(json.dumps(record))


def test_a_small_model_takes_the_place_of_a_large_one_and_back(saved, clf):
    clf.compressed(3500).save(saved)
    assert len(list(saved.iterdir())) == 3
    assert packed_file(saved).suffix == ".zz"
    clf.save(saved)
    assert len(list(saved.iterdir())) == 3
    np.testing.assert_array_equal(kt.load(saved).predict_proba(["great dull"]), clf.predict_proba(["great dull"]))


@pytest.mark.parametrize("part", PARTS)
def test_any_changed_byte_of_a_small_model_is_seen(small, part):
    good = packed_file(small, part).read_bytes()
    for place in range(0, len(good), 40):
        bad = bytearray(good)
        bad[place] ^= 1
        packed_file(small, part).write_bytes(bytes(bad))
        with pytest.raises(kt.ModelError, match="checksum is wrong"):
            kt.load(small)


def test_a_declared_size_is_judged_before_anything_is_inflated(small, monkeypatch):
    good = packed_file(small).read_bytes()
    monkeypatch.setattr("keytokens.estimators.saving.zlib.decompressobj", None)
    for size in (256 * 2**20 + 1, 2**60):
        repacked(small, size.to_bytes(8, "little") + good[8:])
        with pytest.raises(kt.ModelError, match="inflate to far too much"):
            kt.load(small)


def test_no_more_is_inflated_than_was_declared(small):
    """What would swell to 256 megabytes stops after the bytes that it owned up to."""
    deflate = zlib.compressobj(1)
    bomb = b"".join(deflate.compress(bytes(2**20)) for _ in range(256)) + deflate.flush()
    repacked(small, (1000).to_bytes(8, "little") + bomb)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(kt.ModelError, match="does not inflate to the size that it declares"):
        kt.load(small)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < (2**26 if sys.platform == "darwin" else 2**16)  # a quarter of it; bytes there, kilobytes here


@pytest.mark.parametrize(
    "forge",
    [
        lambda good: b"",
        lambda good: good[:7],
        lambda good: good[:-1],
        lambda good: good + b"x",
        lambda good: (int.from_bytes(good[:8], "little") - 1).to_bytes(8, "little") + good[8:],
        lambda good: (int.from_bytes(good[:8], "little") + 1).to_bytes(8, "little") + good[8:],
        lambda good: good[:8] + bytes(len(good) - 8),
        lambda good: (5).to_bytes(8, "little") + zlib.compress(b"12345"),
    ],
)
@pytest.mark.parametrize("part", PARTS)
def test_forged_packing_is_refused_in_one_line(small, part, forge):
    repacked(small, forge(packed_file(small, part).read_bytes()), part)
    with pytest.raises(kt.ModelError, match="is not a readable keytokens model") as refused:
        kt.load(small)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("part", PARTS)
def test_forged_arrays_are_refused(small, part):
    """Every array missing, cut, empty, of another shape or type, and one that nobody asked for."""
    arrays = safetensors_load(zlib.decompress(packed_file(small, part).read_bytes()[8:]))
    for name, array in [*arrays.items(), ("more", np.zeros(1)), ("grid" if part == "words" else "words", np.zeros(1))]:
        changes = [array.astype(np.int64), array[None], array[:0]]
        if name in arrays:
            changes.append(None)
        if name != "words":  # a word less a letter is a word
            changes.append(array[..., :-1])
        for changed in changes:
            others = {key: value for key, value in arrays.items() if key != name}
            forged = others if changed is None else others | {name: np.ascontiguousarray(changed)}
            whole = safetensors_save(forged)
            repacked(small, len(whole).to_bytes(8, "little") + zlib.compress(whole), part)
            with pytest.raises(kt.ModelError, match="is not a readable keytokens model") as refused:
                kt.load(small)
            assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("name", "bad"), [("log_sink", np.nan), ("log_sink", np.inf), ("intercept", np.nan)])
def test_numbers_that_are_none_are_refused(small, name, bad):
    arrays = safetensors_load(zlib.decompress(packed_file(small).read_bytes()[8:]))
    whole = safetensors_save(arrays | {name: np.array([bad])})
    repacked(small, len(whole).to_bytes(8, "little") + zlib.compress(whole))
    with pytest.raises(kt.ModelError, match=f"{name} is not finite"):
        kt.load(small)


def test_files_fit_their_kind(small):
    record = json.loads((small / "model.json").read_text())
    record["kind"] = "BagClassifier"
    (small / "model.json").write_text(json.dumps(record))
    with pytest.raises(kt.ModelError, match="does not name the files that a model of its kind has"):
        kt.load(small)


def test_no_pickle_anywhere():
    source = "\n".join(file.read_text("utf-8") for file in persist.Path(kt.__file__).parent.rglob("*.py"))
    assert "import pickle" not in source
    assert "allow_pickle" not in source
