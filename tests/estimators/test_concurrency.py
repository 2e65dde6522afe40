"""One model, many users: threads and processes get the bits that one thread gets; two writers leave one whole model."""

import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import keytokens as kt
from keytokens.base.errors import KeyTokensError

from ..corpus import reviews, topics

WORKERS = 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A plain model, a compressed one and one of four classes, on the disk."""
    place = tmp_path_factory.mktemp("models")
    clf = kt.KeyTokenClassifier(random_state=0).fit(*reviews(120))
    clf.save(place / "plain")
    clf.compressed(20_000).save(place / "packed")
    kt.KeyTokenClassifier(counts="binary", prior=kt.Prior(sink=0)).fit(*topics(120)).save(place / "four")
    return place


NAMES = ["plain", "packed", "four"]


def texts_of(name: str) -> list[str]:
    return [*(topics if name == "four" else reviews)(30, seed=3)[0], "", "never seen"]


def answers(clf: Any, texts: list[str]) -> str:
    """Every bit of what a model says: repr of a float is exact."""
    explained = [clf.explain(text).to_dict() for text in texts[:6]]
    return repr((clf.predict_proba(texts).tolist(), clf.predict(texts).tolist(), explained, clf.key_tokens(5)))


@pytest.mark.parametrize("name", NAMES)
def test_many_threads_use_one_model(folder, name):
    """All begin at the same moment, with a model that has computed nothing yet: what it keeps, it makes there."""
    texts = texts_of(name)
    expected = answers(kt.load(folder / name), texts)
    shared, gate = kt.load(folder / name), threading.Barrier(WORKERS)

    def work(_: int) -> list[str]:
        gate.wait()
        return [answers(shared, texts) for _ in range(2)]

    with ThreadPoolExecutor(WORKERS) as pool:
        found = [answer for some in pool.map(work, range(WORKERS)) for answer in some]
    assert set(found) == {expected}


def _in_a_process(arguments: tuple[str, str, Any]) -> str:
    folder, name, clf = arguments
    return answers(clf if clf is not None else kt.load(Path(folder) / name), texts_of(name))


@pytest.fixture(scope="module")
def processes() -> Iterator[Any]:
    """Two that were started anew and have inherited nothing."""
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        yield pool


def test_many_processes_use_one_model(folder, processes):
    """Read from the disk there, or sent there."""
    jobs = [(str(folder), name, sent) for name in NAMES for sent in (None, kt.load(folder / name))]
    assert processes.map(_in_a_process, jobs, chunksize=1) == [_in_a_process(job) for job in jobs]


FORK = """
import os, sys
import keytokens as kt
from tests.estimators.test_concurrency import answers, texts_of

clf = kt.load(sys.argv[1])
texts = texts_of(sys.argv[2])
expected = answers(clf, texts)
children = []
for _ in range(3):
    child = os.fork()
    if not child:
        os._exit(answers(clf, texts) != expected)
    children.append(child)
sys.exit(any(os.waitpid(child, 0)[1] for child in children))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_forked_processes_go_on_with_a_model_in_use(folder):
    """The parent has predicted with threads before; a child that waited for one of them would hang."""
    command = [sys.executable, "-c", FORK, str(folder / "plain"), "plain"]
    assert subprocess.run(command, timeout=120, check=False, cwd=Path(__file__).parents[2]).returncode == 0


def _write(arguments: tuple[str, int]) -> str:
    """Save one of two models again and again, and read what is there; what was read, each once."""
    folder, which = arguments
    models = [kt.KeyTokenClassifier(random_state=0, threads=1).fit(*reviews(40, seed=seed)) for seed in (1, 2)]
    known = {repr(clf.predict_proba(["great dull"]).tolist()) for clf in models}
    for _ in range(15):
        models[which].save(folder)
        try:
            if repr(kt.load(folder).predict_proba(["great dull"]).tolist()) not in known:
                return "a model that nobody saved"
        except KeyTokensError as error:
            return str(error)
    return ""


def test_two_processes_save_into_one_folder(tmp_path, processes):
    """In the end one whole model is there, and no file of the other."""
    place = tmp_path / "model"
    assert processes.map(_write, [(str(place), 0), (str(place), 1)], chunksize=1) == ["", ""]
    kt.load(place)
    assert len(list(place.iterdir())) == 4
