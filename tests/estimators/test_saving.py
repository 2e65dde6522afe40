"""A model on disk: the same to the bit, whole or not at all, and nothing is believed without being checked."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import keytokens as kt
from keytokens.estimators import saving as persist

from ..corpus import reviews, topics
from .forging import arrays_of, data_file, record_of


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
    record = record_of(saved)
    assert record["format"] == 3
    names = ["model.json", *(entry["name"] for entry in record["files"].values())]
    assert sorted(file.name for file in saved.iterdir()) == sorted(names)
    numbers, words = (arrays_of(saved, part) for part in ("numbers", "words"))
    np.testing.assert_array_equal(numbers["attention"], clf.attention_)
    assert words["words"].tobytes().decode("utf-8").split("\n") == list(clf.vocabulary_.words)


def test_columns_in_any_order(clf, saved, tmp_path):
    """The columns of a pruned model follow the old ones, and not the nodes."""
    pruned = clf.pruned(60)
    pruned.save(tmp_path / "pruned")
    for folder, turned in ((saved, False), (tmp_path / "pruned", True)):
        assert ("columns" in arrays_of(folder, "words")) == turned
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
        endings[name] = {file.suffix for file in folder.iterdir() if "scores" not in file.name} - {".json"}, len(asked)
        np.testing.assert_array_equal(kt.load(folder).predict_proba(["great"]), model.predict_proba(["great"]))
        asked.clear()
    plainly, packed = ({".safetensors"}, 0), ({".zz"}, 1)
    expected = {"fitted": plainly, "small": packed, "loaded": packed, "pruned": packed, "fitted again": plainly}
    assert endings == expected


def saved_in(model, folder):
    model.save(folder)
    return folder


@pytest.mark.parametrize(
    "name, change",
    [
        ("attention_", 1e-7),
        ("values_", 1e-7),
        ("mean_attention_", 1e-5),
        ("class_counts_", 0.5),
        ("class_counts_", -1e6),
    ],
)
def test_numbers_that_left_their_grid_are_kept_plainly(clf, tmp_path, name, change):
    small = clf.compressed(10**6)
    setattr(small, name, getattr(small, name) + np.float32(change))
    small.save(tmp_path / "model")
    assert data_file(tmp_path / "model", "numbers").suffix == ".safetensors"
    if change > 0:
        np.testing.assert_array_equal(getattr(kt.load(tmp_path / "model"), name), getattr(small, name))


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
    assert len(after) == 4
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
    assert len(list(saved.iterdir())) == 4
    assert kt.load(saved).predict(["great"]).tolist() == ["pos"]


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
    assert raced() == 4
    kt.load(saved)


def test_where_folders_have_no_locks_no_file_of_another_writer_is_deleted(saved, clf, raced, monkeypatch):
    """It may be about to be named: a whole model and a second copy are better than half of one."""
    monkeypatch.setattr("keytokens.base.files.fcntl", None)
    assert raced() == 7
    kt.load(saved)
    clf.save(saved)
    assert len(list(saved.iterdir())) == 7
    monkeypatch.undo()
    clf.save(saved)
    assert len(list(saved.iterdir())) == 4


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


def test_a_small_model_takes_the_place_of_a_large_one_and_back(saved, clf):
    clf.compressed(3500).save(saved)
    assert len(list(saved.iterdir())) == 4
    assert data_file(saved, "numbers").suffix == ".zz"
    clf.save(saved)
    assert len(list(saved.iterdir())) == 4
    np.testing.assert_array_equal(kt.load(saved).predict_proba(["great dull"]), clf.predict_proba(["great dull"]))


def test_no_pickle_anywhere():
    source = "\n".join(file.read_text("utf-8") for file in persist.Path(kt.__file__).parent.rglob("*.py"))
    assert "import pickle" not in source
    assert "allow_pickle" not in source
