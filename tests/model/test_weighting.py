"""One weighting for training, proofs, files and the page."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import keytokens as kt
from keytokens.model.weighting import OPERATIONS, WEIGHTINGS, Weighting, weigh, weighting

from ..app.explorer.browser import Visit, address_of
from ..app.explorer.test_numbers import WORD_SETS, python_answer, same
from ..corpus import reviews

AMOUNTS = [0.0, 1e-300, 0.1, 0.5, 0.999, 1.0, 1.5, 2.0, 2.5, 3.0, 7.25, 1e6]
SATURATING = Weighting("saturating", ("/", ("*", 2.5, "c"), ("+", "c", 1.5)))
ROOT = Weighting("root", ("sqrt", "c"))


def test_weigh():
    C = sparse.csr_matrix(np.array([[0.0, 1.0, 2.0], [5.0, 0.0, 0.0]]))
    assert weigh(C, "raw").toarray().tolist() == [[0, 1, 2], [5, 0, 0]]
    assert weigh(C, "binary").toarray().tolist() == [[0, 1, 1], [1, 0, 0]]
    assert_allclose(weigh(C, "log").toarray(), [[0, 1, 1 + np.log(2)], [1 + np.log(5), 0, 0]], rtol=1e-15)
    assert C.toarray().tolist() == [[0, 1, 2], [5, 0, 0]]  # left as it was
    assert set(WEIGHTINGS) == {"raw", "log", "binary"}


def test_amounts_below_one():
    assert WEIGHTINGS["raw"]([0, 0.25, 0.5]).tolist() == [0, 0.25, 0.5]
    assert WEIGHTINGS["binary"]([0, 0.25, 0.5]).tolist() == [0, 1, 1]
    assert_allclose(WEIGHTINGS["log"]([0, 0.25, 0.5, 1, np.e]), [0, 0.25, 0.5, 1, 2], rtol=1e-15)


@pytest.mark.parametrize("one", [*WEIGHTINGS.values(), SATURATING, ROOT], ids=lambda one: one.name)
def test_the_law(one):
    """Weights grow from 0, ever more slowly; a sum of occurrences is the weight of the sum where it says so."""
    weights = one(AMOUNTS)
    assert weights[0] == 0
    slopes = np.diff(weights) / np.diff(AMOUNTS)
    assert (slopes >= 0).all()
    assert (np.diff(slopes) <= 1e-12 * slopes[:-1]).all()
    assert one.additive == np.allclose(one([2, 3, 4.5]) - one([1, 2, 3.5]), one(1))
    for dtype in (np.float32, np.float64):
        assert one(np.array([0, 2], dtype)).dtype == dtype
    assert one(np.array([0, 2])).dtype == np.float64


@pytest.mark.parametrize(
    "value", [("+", "c", 1), ("*", "c", "c"), ("*", -1, "c"), 0.0, ("max", 0, ("+", "c", -1))], ids=repr
)
def test_what_breaks_the_law_is_refused(value):
    with pytest.raises(kt.InputError, match="Weighting: `value` must be 0 for 0, then positive, and grow ever more"):
        Weighting("bad", value)


def test_unknown_names_are_refused(tmp_path):
    with pytest.raises(kt.InputError, match=r"weighting: `counts` must be one of 'raw', 'log', 'binary'; saw 'often'"):
        weighting("often")
    with pytest.raises(kt.InputError, match="`counts` must be one of"):
        kt.KeyTokenClassifier(counts="often").fit(*reviews(20))
    kt.KeyTokenClassifier().fit(*reviews(20)).save(tmp_path)
    record = json.loads((tmp_path / "model.json").read_text())
    record["options"]["counts"] = "often"
    (tmp_path / "model.json").write_text(json.dumps(record))
    with pytest.raises(kt.ModelError, match=r"`counts` must be one of 'raw', 'log', 'binary'; saw 'often'") as refused:
        kt.load(tmp_path)
    assert "\n" not in str(refused.value)


def opened(browser, tmp_path, clf, texts, labels):
    clf.report(tmp_path / "report.html", texts, labels)
    return Visit(browser, address_of(tmp_path / "report.html"))


def test_the_page_weighs_alike(browser, tmp_path):
    texts, labels = reviews(40)
    one = opened(browser, tmp_path, kt.KeyTokenClassifier(threads=1).fit(texts, labels), texts, labels)
    used = set()
    for each in (*WEIGHTINGS.values(), SATURATING, ROOT):
        ask = "([value, amounts]) => amounts.map(keytokens.weightingOf({ value }).of)"
        found = one.run(ask, [json.loads(json.dumps(each.value)), AMOUNTS])
        assert_allclose(found, each(AMOUNTS), rtol=1e-15, atol=0)  # logarithms may differ in the last bit
        used |= {operation for operation in OPERATIONS if repr(operation) in repr(each.value)}
    assert used == set(OPERATIONS)
    one.check()
    one.context.close()


def test_a_fourth_weighting(browser, tmp_path, monkeypatch):
    """One entry in the registry: training, predictions, proofs, files and the page follow."""
    monkeypatch.setitem(WEIGHTINGS, "saturating", SATURATING)
    texts, labels = reviews(80, seed=3)
    texts = [f"{text} {text}" for text in texts]  # tokens that occur more than once
    clf = kt.KeyTokenClassifier(counts="saturating", ngrams=(1, 2), threads=1).fit(texts, labels)
    assert not np.allclose(clf.predict_proba(texts), clf.set_params(counts="log").predict_proba(texts))
    e = clf.set_params(counts="saturating").explain(texts[0])
    assert e.logit == pytest.approx(float(clf.decision_function(texts[:1])[0]), abs=1e-12)
    masked = list(texts[0])
    for word in reversed(e.flip_words):
        masked[word.start : word.end] = kt.MASK
    assert clf.predict(["".join(masked)])[0] == e.flip_words.label_after != e.label
    clf.save(tmp_path / "model")
    assert np.array_equal(kt.load(tmp_path / "model").predict_proba(texts), clf.predict_proba(texts))
    one = opened(browser, tmp_path, clf, texts, labels)
    for text, ours in zip(texts, one.run("(t) => t.map((x) => keytokens.explain(x).toJSON())", texts), strict=True):
        same(ours, python_answer(clf, text), text)
    for text, (kept, gone) in zip(texts[:8], one.run(WORD_SETS, texts[:8]), strict=True):
        e = clf.explain(text)
        assert [kept["size"], gone["size"]] == [e.sufficient_words.size, e.flip_words.size]
    one.check()
    one.context.close()
