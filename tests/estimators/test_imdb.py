"""Real reviews, from outside: accuracy, calibration, and proofs put to the test by random maskings."""

import numpy as np
import pytest

import keytokens as kt
from keytokens.text import spans

from ..corpus import masked


@pytest.fixture(scope="module")
def split(imdb):
    texts, labels = imdb
    return texts[:8000], labels[:8000], texts[8000:11_000], labels[8000:11_000]


@pytest.fixture(scope="module")
def clf(split):
    return kt.KeyTokenClassifier(random_state=0).fit(split[0], split[1])


def test_accuracy_and_calibration(clf, split):
    _, _, texts, labels = split
    P = clf.predict_proba(texts)
    right = clf.classes_[P.argmax(axis=1)] == np.array(labels)
    assert right.mean() > 0.89
    confidence = P.max(axis=1)
    bins = np.minimum((confidence * 15).astype(int), 14)
    gaps = [abs(confidence[bins == b].mean() - right[bins == b].mean()) * (bins == b).mean() for b in np.unique(bins)]
    assert sum(gaps) < 0.05  # expected calibration error


def test_sets_are_short(clf, split):
    """And shorter with more brevity."""
    brief = kt.KeyTokenClassifier(brevity=0.8).fit(split[0], split[1])
    for model, most in ((clf, 16), (brief, 5)):
        found = list(model.explain_many(split[2][:300]))
        assert np.median([e.sufficient.size for e in found]) <= most
        assert all(e.sufficient.status == "minimum" for e in found)
    assert np.mean(brief.predict(split[2]) == np.array(split[3])) > 0.88


def test_random_maskings_never_break_a_proof(clf, split):
    """Masked outside the sufficient words, a text keeps its label; with the flip words masked it does not."""
    rng = np.random.RandomState(0)
    for text in [text for text in split[2] if len(text) < 1200][:40]:
        e = clf.explain(text)
        places = [tuple(span) for span in spans(text).tolist()]
        number = {span: i for i, span in enumerate(places)}
        kept = {number[(item.start, item.end)] for item in e.sufficient_words}
        free = np.array([i for i in range(len(places)) if i not in kept])
        trials = [masked(text, set(free[rng.rand(len(free)) < rng.rand()].tolist())) for _ in range(20)]
        assert set(clf.predict(trials).tolist()) == {e.label}
        if e.flip_words.status == "minimum":
            gone = {number[(item.start, item.end)] for item in e.flip_words}
            assert clf.predict([masked(text, gone)]).tolist() == [e.flip_words.label_after]
            assert e.flip_words.label_after != e.label
            for spared in gone:  # a minimum: none of them can be spared
                assert clf.predict([masked(text, gone - {spared})]).tolist() == [e.label]


def test_html_tags_are_no_tokens(clf):
    assert "br" not in clf.vocabulary_.tokens[:2000]
