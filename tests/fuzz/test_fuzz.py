"""A short run of the fuzzing, with a seed; `make fuzz` is the long one."""

import re
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from .mutate import mutated, mutated_json
from .run import READERS, one_input

ROOT = Path(__file__).parents[2]


def test_no_input_does_harm():
    """Every reader; success or a clear error, within time and memory, and nothing touched outside of its folder."""
    command = [sys.executable, "-m", "tests.fuzz", "--inputs", "2500", "--seed", "7"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {line.split()[0] for line in done.stdout.splitlines()[:-1]} == set(READERS)
    for end, least in (("refused", 500), ("accepted", 100)):
        assert sum(map(int, re.findall(rf"([\d,]+) {end}", done.stdout.replace(",", "")))) > least


BAD = """
import os, socket, subprocess, sys, time, warnings
from pathlib import Path
from tests.fuzz.watch import Watch
from keytokens import DataError

place, elsewhere = Path(sys.argv[1]), Path(sys.argv[2])
watch = Watch(place, every=1)
deeds = {
    "accepted": lambda: (place / "mine").write_text("x"),
    "refused": lambda: refuse("one clear line"),
    "broken": lambda: refuse("two\\nlines"),
    "crashed": lambda: {}["missing"],
    "memory": lambda: b"x" * (300 * 2**20),
}
escapes = [
    lambda: (elsewhere / "x").write_text("x"),
    lambda: os.rename(place / "mine", elsewhere / "mine"),
    lambda: os.mkdir(elsewhere / "folder"),
    lambda: subprocess.run(["true"]),
    lambda: os.system("true"),
    lambda: socket.create_connection(("127.0.0.1", 9), timeout=1),
]

def refuse(line):
    raise DataError(line)

for end, deed in deeds.items():
    found, said = watch.read(lambda _: deed(), b"")
    assert found == end, (found, end, said)
for deed in escapes:
    found, said = watch.read(lambda _: deed(), b"")
    assert found == "escaped", (found, said)
"""


def test_the_watch_sees_what_it_is_for(tmp_path):
    """A watch that sees nothing would find nothing: it is shown every kind of harm."""
    for name in ("place", "elsewhere"):
        (tmp_path / name).mkdir()
    command = [sys.executable, "-c", BAD, str(tmp_path / "place"), str(tmp_path / "elsewhere")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["model-forged", "csv.gz", "parquet", "working"])
def test_an_input_can_be_made_again(tmp_path, name):
    one, other = (READERS[name](place) for place in (tmp_path / "a", tmp_path / "b") if place.mkdir() is None)
    if name == "model-forged":  # a saved model has file names of its own; the damage is the same
        other.files, other.records = one.files, one.records
    made = [[one_input(name, 3, index, reader) for index in range(40)] for reader in (one, other)]
    assert made[0] == made[1]
    assert len(set(made[0])) > 20


def test_damage_is_damage():
    """Nearly every input differs from its seed, and no damage changes the values it is drawn from."""
    rng = Random(0)
    assert sum(mutated(rng, [b"text,label\na,b\n"]) != b"text,label\na,b\n" for _ in range(500)) > 450
    record = {"a": [1, {"b": "c"}], "d": None}
    once = [mutated_json(Random(f"{i}"), record) for i in range(200)]
    assert once == [mutated_json(Random(f"{i}"), record) for i in range(200)]
    assert len(set(once)) > 50
