"""What a user's type checker sees: `mypy --strict` on a small script, against the package as it is installed."""

import importlib.util
import re
import subprocess
import sys
from importlib.resources import files

import pytest

from .conftest import skip_or_fail

RIGHT = """
from collections.abc import Iterator
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import keytokens as kt
from keytokens.explain import BagExplanation, Certificate, FormalItem, FormalSet, KeyTokens, TokenUse

texts, labels = ["a great film", "a dull plot"], ["good", "bad"]
clf = kt.KeyTokenClassifier(ngrams=(1, 2)).fit(texts, labels)
assert_type(clf, kt.KeyTokenClassifier)
assert_type(kt.KeyTokenClassifier().fit(texts, labels).predict(texts), NDArray[Any])
assert_type(clf.predict_proba(texts), NDArray[np.floating[Any]])
assert_type(clf.key_tokens(n=10), KeyTokens)

e = clf.explain("a dull plot, but great acting")
assert_type(e, kt.Explanation)
assert_type((e.probability, e.logit), tuple[float, float])
assert_type(e.tokens[0], TokenUse)
assert_type((e.tokens[0].text, e.tokens[0].attention), tuple[str, float])
assert_type((e.sufficient, e.flip, e.flip_words), tuple[FormalSet, FormalSet, FormalSet])
assert_type([item for item in e.flip], list[FormalItem])
assert_type(e.sufficient.size, int)
assert_type(e.certificate, Certificate)
assert_type(e.certificate.sentence, str)
assert_type(clf.explain_many(texts), Iterator[kt.Explanation])

assert_type(kt.BagClassifier().fit([np.eye(2), np.eye(2)], labels).explain(np.eye(2)), BagExplanation)
assert_type(kt.autotune(texts, labels, seconds=60).model, kt.KeyTokenClassifier)
try:
    kt.load("model/")
except kt.ModelError as error:
    assert_type(str(error), str)
"""
WRONG = {
    "kt.KeyTokenClasifier()": "attr-defined",
    "clf.fit(texts)": "call-arg",
    "clf.explain(texts)": "arg-type",
    "clf.explain('a').certificate.sentense": "attr-defined",
    "kt.KeyTokenClassifier(ngrams='12')": "arg-type",
}


def test_the_marker_is_there():
    assert files("keytokens").joinpath("py.typed").is_file()


@pytest.fixture(scope="module")
def complaints(tmp_path_factory) -> list[tuple[int, str, str]]:
    """Line, what is said and its kind, of the right lines and then the wrong ones."""
    if importlib.util.find_spec("mypy") is None:
        skip_or_fail("mypy is not installed")
    folder = tmp_path_factory.mktemp("user")
    (folder / "script.py").write_text(RIGHT + "\n".join(WRONG) + "\n", "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir=cache", "script.py"]
    shown = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert not shown.stderr
    found = re.findall(r"^script\.py:(\d+): error: (.*?)(?:  \[([a-z-]+)\])?$", shown.stdout, re.M)
    return [(int(line), said, kind) for line, said, kind in found]


def test_a_right_script_has_no_complaints(complaints):
    assert [(line, said) for line, said, _ in complaints if line <= RIGHT.count("\n")] == []


@pytest.mark.parametrize("number, code", list(enumerate(WRONG)))
def test_a_wrong_line_has_one(complaints, number, code):
    assert [kind for line, _, kind in complaints if line == RIGHT.count("\n") + 1 + number] == [WRONG[code]]
