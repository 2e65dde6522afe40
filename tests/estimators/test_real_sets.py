"""Other real sets, where they are at hand: four classes, short sentences, unequal classes."""

from __future__ import annotations

import numpy as np
import pytest

import keytokens as kt
from keytokens.io import labels_of, read_table, texts_of


@pytest.fixture(scope="module", params=["ag_news", "yelp_sentences", "yelp_reviews"])
def real(request, data_folder):
    table = read_table(str(data_folder / f"{request.param}_train.parquet"))
    texts, labels = texts_of(table, "text"), labels_of(table, "label")
    order = np.random.RandomState(0).permutation(len(texts))[:8000]
    return request.param, [texts[i] for i in order], [labels[i] for i in order]


LEAST = {"ag_news": 0.87, "yelp_sentences": 0.93, "yelp_reviews": 0.925}


def test_accuracy_and_sets(real):
    name, texts, labels = real
    clf = kt.KeyTokenClassifier().fit(texts[:6000], labels[:6000])
    assert clf.score(texts[6000:], labels[6000:]) > LEAST[name]
    found = [clf.explain(text) for text in texts[6000:6200]]
    assert np.median([e.sufficient.size for e in found]) <= 4
    for e in found:
        assert e.sufficient.lower <= e.sufficient.size
        assert e.flip.status in ("minimum", "none")
        assert e.certificate.at_least <= e.probability
    minimum = np.mean([e.sufficient.status == "minimum" for e in found])
    assert minimum > (0.85 if name == "ag_news" else 0.999)
