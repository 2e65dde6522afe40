"""A short run of the kills, with a seed; `make crash` is the long one. And disks that are full at every step."""

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import keytokens as kt
from keytokens.app.cli.app import run
from keytokens.io import write_table

from ..corpus import reviews

ROOT = Path(__file__).parents[2]
SHORT = ["fit-over", "save", "two-writers", "report", "store"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills are a matter of Unix")
def test_killed_at_any_moment():
    """The old or the new, never half of one: see the table PHASES."""
    command = [sys.executable, "-m", "tests.crash", *SHORT, "--kills", "12", "--seed", "3"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    *phases, last = done.stdout.splitlines()
    assert [line.split()[0] for line in phases] == SHORT
    assert int(last.split()[0]) >= 10


@pytest.fixture(scope="module")
def models():
    return [kt.KeyTokenClassifier(random_state=0, threads=1).fit(*reviews(40, seed=seed)) for seed in (1, 2)]


@contextmanager
def small_disk(kilobytes: int) -> Iterator[Path]:
    """A disk of this size in memory."""
    with tempfile.TemporaryDirectory(prefix="disk-") as folder:
        words = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k,mode=755", "keytokens-test", folder]
        try:
            if subprocess.run(words, capture_output=True, check=False).returncode:
                pytest.skip("to mount a disk needs root")
        except OSError:
            pytest.skip("the command mount is missing")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)


def answers(model) -> str:
    return repr(model.predict_proba(["great dull"]).tolist())


def test_disks_of_every_size(models):
    """Real ones, from too small to large enough: the old model and an error, or the new one."""
    old, new = models
    with tempfile.TemporaryDirectory() as folder:
        old.save(Path(folder) / "model")
        needed = sum(-(-file.stat().st_size // 4096) * 4 for file in (Path(folder) / "model").iterdir())
    ended = []
    for more in range(0, needed + 24, 4):
        with small_disk(needed + 8 + more) as disk:
            place = disk / "model"
            old.save(place)
            try:
                new.save(place)
                ended.append(new)
            except kt.OutputError as error:
                ended.append(old)
                said = str(error)
            assert answers(kt.load(place)) == answers(ended[-1])
            assert len(list(place.iterdir())) == 4
    assert len({id(model) for model in ended}) == 2
    assert "no space left on device" in said


def test_a_folder_that_must_not_be_written(models):
    """Without the right to write: an error, and nothing has changed."""
    old, new = models
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        place = Path(folder) / "model"
        old.save(place)
        before = {file.name: file.read_bytes() for file in place.iterdir()}
        for file in place.iterdir():
            file.chmod(0o644)
        place.chmod(0o555)
        own = os.geteuid()
        if own == 0:
            os.seteuid(65534)  # for root every folder is writable
        try:
            kt.load(place)
            with pytest.raises(kt.OutputError, match=r"permission denied\. What was there before is unchanged"):
                new.save(place)
        finally:
            os.seteuid(own)
            place.chmod(0o755)
        assert {file.name: file.read_bytes() for file in place.iterdir()} == before


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT])
@pytest.mark.parametrize("call", ["fsync", "replace", "open"])
@pytest.mark.parametrize("turn", range(3))
def test_a_disk_that_refuses_at_any_call(tmp_path, models, monkeypatch, code, call, turn):
    """An OutputError and the old model without a trace of the new one; or, after the commit point, the new model."""
    old, new = models
    old.save(tmp_path / "model")
    before = {file.name: file.read_bytes() for file in (tmp_path / "model").iterdir()}
    real, calls = getattr(os, call), 0

    def refusing(*arguments, **options):
        nonlocal calls
        calls += 1
        if calls == turn + 1:
            raise OSError(code, os.strerror(code))
        return real(*arguments, **options)

    monkeypatch.setattr(os, call, refusing)
    try:
        new.save(tmp_path / "model")
        said = ""
    except kt.OutputError as error:
        said = str(error)
    finally:
        monkeypatch.undo()
    saved = not said
    assert saved or "What was there before is unchanged." in said
    assert answers(kt.load(tmp_path / "model")) == answers(new if saved else old)
    assert len(list((tmp_path / "model").iterdir())) == 4 or saved
    if not saved:
        assert {file.name: file.read_bytes() for file in (tmp_path / "model").iterdir()} == before


def test_leftovers_of_a_kill_are_ignored(tmp_path, models):
    """Files of a save that was killed are not read, not named, not in the way, and gone after the next save."""
    old, new = models
    old.save(tmp_path / "model")
    for name in ("numbers-0123456789abcdef.safetensors", ".model.json.0123456789ab.tmp"):
        (tmp_path / "model" / name).write_bytes(b"half")
    assert kt.load(tmp_path / "model").predict(["great"]) == old.predict(["great"])
    new.save(tmp_path / "model")
    assert kt.load(tmp_path / "model").predict(["great"]) == new.predict(["great"])
    assert len(list((tmp_path / "model").iterdir())) == 4


def test_a_model_is_rescued_from_a_full_disk(tmp_path, capsys, monkeypatch):
    """A real one, which has room for neither the model nor another one beside it."""
    texts, labels = reviews(120)
    write_table(str(tmp_path / "in.csv"), {"text": texts, "label": labels})
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with small_disk(12) as disk:
        assert run(["fit", str(tmp_path / "in.csv"), "-o", str(disk / "model")]) == 2
        assert not [file for file in disk.rglob("*") if file.is_file()]
    (line,) = capsys.readouterr().err.splitlines()
    assert "no space left on device" in line
    (rescue,) = tmp_path.glob("keytokens-rescue-*")
    assert line.endswith(f"The model was saved to {str(rescue)!r} instead.")
    assert kt.load(rescue).classes_.tolist() == ["neg", "pos"]
