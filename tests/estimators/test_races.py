"""Threads that take turns at every byte code, on pieces of a few words: what they share must not change a bit.

A lost update shows once in some thousand turns, so each test takes many; `sys.setswitchinterval` makes the turns short.
"""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import keytokens as kt
from keytokens.base.threads import one_blas_thread
from keytokens.model import blocks
from keytokens.text import words

from ..corpus import reviews, topics

THREADS = (2, 4, 8)
SETS = {"reviews": reviews(40), "topics": topics(40)}


@pytest.fixture(autouse=True)
def many_turns(monkeypatch):
    """Short turns, blocks of some texts, and parts of some tokens."""
    monkeypatch.setattr(words, "CHARACTERS", 100)
    monkeypatch.setattr(blocks, "_PART", 128)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def model_of(name: str, threads: int, options: dict[str, Any]) -> kt.KeyTokenClassifier:
    return kt.KeyTokenClassifier(threads=threads, random_state=0, max_iter=3, **options).fit(*SETS[name])


def bits_of(clf: kt.KeyTokenClassifier, texts: list[str]) -> str:
    """Every bit of a model and of what it says: repr of a float is exact."""
    arrays = [clf.attention_, clf.values_, clf.intercept_, clf.mean_attention_, clf.class_counts_]
    said = [e.to_dict() for e in clf.explain_many(texts[:8])]
    return repr((clf.vocabulary_.tokens, [array.tolist() for array in arrays], clf.predict_proba(texts).tolist(), said))


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("options", [{}, {"ngrams": (1, 2), "brevity": 0.8, "counts": "log"}], ids=["usual", "other"])
def test_build_train_predict_and_explain(name, options):
    texts, _ = SETS[name]
    expected = bits_of(model_of(name, 1, options), texts)
    for threads in THREADS * 2:
        assert bits_of(model_of(name, threads, options), texts) == expected, f"{threads} threads"


def test_fits_and_answers_side_by_side():
    """Several users of one process: some fit, some ask one model that has computed nothing yet."""
    texts, labels = SETS["reviews"]
    expected = bits_of(model_of("reviews", 1, {}), texts)
    bags = np.random.default_rng(0).normal(size=(40, 6, 5)) + np.array(labels[:40] == np.array("pos"))[:, None, None]
    of_bags = kt.BagClassifier(random_state=0).fit(bags, labels[:40]).predict_proba(bags).tolist()

    def work(number: int) -> bool:
        if number % 4 == 3:
            clf = kt.BagClassifier(random_state=0).fit(bags, labels[:40])
            return clf.predict_proba(bags).tolist() == of_bags
        return bits_of(shared if number % 2 else model_of("reviews", 2, {}), texts) == expected

    for _ in range(2):
        shared = model_of("reviews", 2, {})
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(work, range(8)))


def test_blas_has_one_thread_as_long_as_anybody_wants_that():
    def threads() -> set[int]:
        return {found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"}

    inside, first_has_left = threading.Event(), threading.Event()

    def second() -> set[int]:
        with one_blas_thread():
            inside.set()
            first_has_left.wait(20)
            return threads()

    with threadpool_limits(2, "blas"), ThreadPoolExecutor(1) as pool:
        with one_blas_thread():
            answer = pool.submit(second)
            inside.wait(20)
        first_has_left.set()
        assert answer.result() == {1}
        assert threads() == {2}
