"""Sets of many documents at once are those of each alone, ties and all; what is not clear says so."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from keytokens.proof import Votes, flip, sufficient
from keytokens.proof.batch import FAR, _descending, answers, relative_weights
from keytokens.proof.ranges import least_keeping, probability_of, probability_without

WHOLE = st.tuples(st.integers(0, 2), st.integers(-3, 3).map(float))  # log weights and margins that tie often
REAL = st.tuples(st.floats(-3, 3), st.floats(-2, 2))
DOCUMENTS = st.lists(
    st.lists(WHOLE, min_size=1, max_size=7) | st.lists(REAL, min_size=1, max_size=12), min_size=1, max_size=6
)
SINKS = st.none() | st.tuples(st.floats(-2, 2), st.sampled_from([-1.0, 0.0, 0.5, 2.0]))


def several(documents, sink):
    """Every document with the label that wins it; a label is a sign of the margins."""
    log_sink, sink_margin = sink or (-math.inf, 0.0)
    found = []
    for document in documents:
        log_weight, margin = (np.array(column, float) for column in zip(*document, strict=True))
        votes = np.exp(np.append(log_weight, log_sink)) * np.append(margin, sink_margin)
        label = int(math.fsum(votes.tolist()) > 0)
        values = np.stack([np.zeros(len(margin)), margin], axis=1)
        found.append(Votes.of(log_weight, values, label, log_sink, np.array([0.0, sink_margin])))
    return found


def together(some):
    ends = np.cumsum([0, *(one.tokens for one in some)])
    log_weight = np.concatenate([one.log_weight for one in some])
    margin = np.concatenate([one.margin[:, 0] for one in some])
    weights = relative_weights(log_weight, ends, some[0].sink_log_weight)
    return answers(log_weight, margin, ends, weights, np.array([one.sink_margin[0] for one in some])), ends


@given(DOCUMENTS, SINKS)
def test_clear_answers_are_those_of_each_document(documents, sink):
    some = several(documents, sink)
    found, ends = together(some)
    for i in np.flatnonzero(found.clear).tolist():
        kept, gone = sufficient(some[i]), flip(some[i])
        own = (found.order[found.begin[i] :] - ends[i]).tolist()
        assert (tuple(own[: found.kept[i]]), tuple(own[: found.gone[i]])) == (kept.indices, gone.indices)
        assert (kept.status, gone.status, kept.tight, gone.tight) == ("minimum", "minimum", False, False)
        assert gone.label_after == 1 - some[i].label
        np.testing.assert_allclose(found.least[i], least_keeping(some[i], kept.indices)[0], rtol=1e-9, atol=1e-12)
        after = probability_of(found.after[i : i + 1])
        np.testing.assert_allclose(after, probability_without(some[i], gone.indices), rtol=1e-9, atol=1e-12)


@given(DOCUMENTS, SINKS)
def test_the_others_change_nothing(documents, sink):
    """To the bit, whether a document stands alone or among others."""
    some = several(documents, sink)
    found, _ = together(some)
    for i, one in enumerate(some):
        alone, _ = together([one])
        assert found.clear[i] == alone.clear[0]
        if alone.clear[0]:
            assert (found.kept[i], found.gone[i]) == (alone.kept[0], alone.gone[0])
            assert (found.least[i], found.after[i]) == (alone.least[0], alone.after[0])


NEAR = st.integers(-3, 3).map(lambda steps: 1.0 + steps * 2.0**-52)  # told apart only by their last digits
SIZES = st.floats(-1e3, 1e3) | st.integers(-2, 2).map(float) | st.just(-0.0) | NEAR


@given(st.lists(st.tuples(st.integers(0, 5), SIZES), max_size=30))
def test_sizes_fall_within_each_owner_and_equal_ones_keep_their_order(pairs):
    pairs.sort(key=lambda pair: pair[0])
    owner, size = np.array([o for o, _ in pairs], np.intp), np.array([s for _, s in pairs], float)
    expected = sorted(range(len(pairs)), key=lambda i: (pairs[i][0], -pairs[i][1], i))
    assert _descending(size, owner).tolist() == expected


def test_plain_documents_are_clear_and_special_ones_are_not():
    plain = [(0.0, 2.0), (0.3, 1.0), (0.1, -0.5)]
    tie = [(0.0, 2.0), (0.0, 1.0), (0.0, -2.0)]
    unopposed = [(0.0, 2.0)]
    far = [(0.0, 2.0), (FAR + 1, 1.0), (FAR + 1.5, -0.5)]
    hidden = [(0.0, 2.0), (-40.0, -1.0)]  # opposition below the last digit of the support
    found, _ = together(several([plain, tie, unopposed, far, hidden], None))
    assert found.clear.tolist() == [True, False, False, False, False]


def test_support_of_next_to_nothing_is_not_clear():
    """Quotients that would overflow: the sink outweighs it, or it is outweighed."""
    for sink_margin in (1.0, -1.0):
        weights = relative_weights(np.array([0.0, 0.0]), np.array([0, 2]), 0.0)
        found = answers(np.zeros(2), np.array([1e-320, -1.0]), np.array([0, 2]), weights, np.array([2 * sink_margin]))
        assert not found.clear.any()
