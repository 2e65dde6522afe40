"""The measures of the benchmark of faithfulness, on cases done by hand and against a second road."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.corpus import reviews

import keytokens as kt

from .. import faithfulness as bench

MASKS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=12).map(np.array)


def mask(marks: str) -> np.ndarray:
    return np.array([mark == "1" for mark in marks])


# Measures ------------------------------------------------------------------------------------------------------------


def test_drops_by_hand():
    """A probability that is a sum over the kept items."""
    worth = np.array([0.4, 0.3, 0.2, 0.1])

    def probability(kept):
        return kept @ worth

    without, alone = bench.drops(probability, np.array([mask("1000"), mask("0110")]))
    np.testing.assert_allclose(without, [0.4, 0.5])
    np.testing.assert_allclose(alone, [0.6, 0.5])


def test_areas_by_hand():
    """With four items the shares are 1, 1, 1, 1 and 2 items."""
    worth = np.array([0.1, 0.4, 0.2, 0.3])
    found = bench.ranked_measures(worth, mask("0101"), lambda kept: kept @ worth)
    assert found["comprehensiveness"] == pytest.approx((4 * 0.4 + 0.7) / 5)
    assert found["sufficiency"] == pytest.approx((4 * 0.6 + 0.3) / 5)
    assert (found["f1"], found["iou_f1"], found["auprc"]) == (1, 1, 1)
    backwards = bench.ranked_measures(-worth, mask("0101"), lambda kept: kept @ worth)
    assert backwards["comprehensiveness"] == pytest.approx((4 * 0.1 + 0.3) / 5)
    assert backwards["f1"] == 0
    assert backwards["auprc"] == pytest.approx((1 / 3 + 2 / 4) / 2)  # the marked items come third and fourth


def test_a_set_by_hand():
    worth = np.array([0.4, 0.3, -0.35, 0.2])
    found = bench.set_measures(mask("1000"), mask("1100"), lambda kept: 0.45 + kept @ worth, worth < 0)
    assert found["size_share"] == 0.25
    assert found["size_comprehensiveness"] == pytest.approx(0.4)
    assert found["size_sufficiency"] == pytest.approx(0.15)
    assert (found["size_kept"], found["size_attacked"]) == (1, 1)
    assert found["size_f1"] == pytest.approx(2 / 3)
    weaker = bench.set_measures(mask("0100"), mask("1100"), lambda kept: 0.45 + kept @ worth, worth < 0)
    assert (weaker["size_kept"], weaker["size_attacked"]) == (1, 0)


@given(MASKS)
def test_f1_is_the_mean_of_precision_and_recall(both):
    chosen, human = both.T
    if not (chosen.any() and human.any()):
        return
    precision, recall = human[chosen].mean(), chosen[human].mean()
    expected = 2 * precision * recall / (precision + recall) if precision else 0
    assert bench.f1(chosen, human) == pytest.approx(expected)


def sets_of_runs(marks: np.ndarray) -> list[set[int]]:
    """Runs as sets of places, found one place after the other."""
    found: list[set[int]] = []
    for place in np.flatnonzero(marks).tolist():
        if found and place - 1 in found[-1]:
            found[-1].add(place)
        else:
            found.append({place})
    return found


@given(MASKS)
def test_runs_and_their_overlaps_by_sets(both):
    chosen, human = both.T
    own, theirs = sets_of_runs(chosen), sets_of_runs(human)
    assert [set(range(*run)) for run in bench.runs_of(chosen)] == own
    hits = np.array([[len(a & b) / len(a | b) >= 0.5 for b in theirs] for a in own], bool).reshape(
        len(own), len(theirs)
    )
    precision = hits.any(axis=1).mean() if len(own) else 0
    recall = hits.any(axis=0).mean() if len(theirs) else 0
    expected = 2 * precision * recall / (precision + recall) if precision else 0
    assert bench.iou_f1(chosen, human) == pytest.approx(expected)


@pytest.mark.parametrize(
    "chosen, human, expected",
    [("0110", "0110", 1), ("0100", "0110", 1), ("0100", "0111", 0), ("110011", "110000", 2 / 3), ("1010", "1111", 0)],
)
def test_overlaps_by_hand(chosen, human, expected):
    assert bench.iou_f1(mask(chosen), mask(human)) == pytest.approx(expected)


# Explanations --------------------------------------------------------------------------------------------------------


def closed_form(w, b, sink):
    """The integral of the gradient, with W = sum w, A = sum w b and L = log(1 + W / sink)."""
    W, A, L = w.sum(), w @ b, np.log1p(w.sum() / sink)
    return w * b * L / W - w * A / W**2 * (L - W / (W + sink))


@given(
    st.lists(st.tuples(st.floats(0.01, 1), st.floats(-5, 5)), min_size=1, max_size=6).map(np.array),
    st.floats(0.2, 3),
)
def test_integrated_gradients(tokens, sink):
    w, b = tokens.T
    w = w / w.sum()
    found = bench.integrated_gradients(w, b, sink)
    np.testing.assert_allclose(found, closed_form(w, b, sink), atol=2e-3 * np.abs(b).max() + 1e-12)
    f = w @ b / (w.sum() + sink)
    assert found.sum() == pytest.approx(f, abs=2e-3 * np.abs(b).max() + 1e-12)


@pytest.fixture(scope="module")
def model():
    return kt.KeyTokenClassifier(threads=1).fit(*_numbered(reviews(150)))


def _numbered(pair):
    texts, labels = pair
    return texts, [int(label == "pos") for label in labels]


@pytest.fixture(scope="module")
def review():
    return bench.Review.of(
        "the plot , was not dull ! and this great actor was not weak , 9/10 .", "01001100110000100", 1
    )


def test_items_are_what_the_model_sees(review):
    assert review.items[:6] == ("the", "plot", "was", "not", "dull", "!")
    assert review.items[-1] == "9/10"
    assert [review.text[start:].split()[0] for start in review.starts] == list(review.items)
    with pytest.raises(ValueError, match="zip"):
        bench.Review.of("two items", "1", 0)


def keeping(items, kept) -> str:
    return " ".join(item if keep else kt.MASK for item, keep in zip(items, kept.tolist(), strict=True))


def test_masked_reads_what_the_model_says_of_masked_texts(model, review):
    masked = bench.Masked.of(review, model.explain(review.text), model)
    kept = np.random.default_rng(0).random((40, len(review.items))) < np.linspace(0, 1, 40)[:, None]
    texts = [keeping(review.items, row) for row in kept]
    expected = model.predict_proba(texts)[:, 1]
    np.testing.assert_allclose(masked.probability(kept), expected, atol=1e-12)
    glued = [text.replace(f"{kt.MASK} ", kt.MASK) for text in texts]  # as SHAP writes them
    np.testing.assert_allclose(masked.of_texts(glued), expected, atol=1e-12)


def test_contributions_of_items_are_what_masking_takes_away(model, review):
    explanation = model.explain(review.text)
    masked = bench.Masked.of(review, explanation, model)
    scores = bench.scores_of("contributions", 0, review, masked)
    for item, (start, word) in enumerate(zip(review.starts.tolist(), review.items, strict=True)):
        end = start + len(word)
        uses = [use for use in explanation.tokens if use.start < end and start < use.end]
        assert scores[item] == pytest.approx(sum(use.contribution for use in uses))


def test_the_sufficient_set_stands_every_attack(model):
    texts, labels = _numbered(reviews(40, seed=1))
    for number, (text, label) in enumerate(zip(texts, labels, strict=True)):
        case = bench.Review.of(text, "1" * len(text.split()), label)
        own, *others = bench.measured(number, case, model, ["contributions", "gradients", "random"])
        assert own["method"] == bench.SET
        assert (own["size_kept"], own["size_attacked"]) == (1, 1)
        assert [other["method"] for other in others] == ["contributions", "gradients", "random"]
        assert all(other["size_share"] == own["size_share"] for other in others)
        assert others[0]["comprehensiveness"] >= others[2]["comprehensiveness"] - 0.05


# Tables --------------------------------------------------------------------------------------------------------------


def test_the_page_shows_the_results():
    lines = bench.read_lines(bench.RESULTS / "faithfulness.csv")
    page = bench.PAGE.read_text("utf-8")
    assert bench.with_tables(page, bench.tables(lines)) == page
    for drawing in bench.tables(lines).values():
        assert drawing in page


def test_tables_go_between_their_comments():
    page = "<!-- a -->\n<!-- end -->\nwords\n<!-- b -->\nold\n<!-- end -->\n"
    expected = "<!-- a -->\nA\n<!-- end -->\nwords\n<!-- b -->\nB\n<!-- end -->\n"
    assert bench.with_tables(page, {"a": "A", "b": "B"}) == expected
    assert bench.with_tables(expected, {"a": "A", "b": "B"}) == expected


def test_differences_are_of_the_same_texts():
    lines = [
        {"method": name, "text": text, "sampled": "1", **dict.fromkeys(bench.RANKED, value)}
        for name, places, values in [("contributions", "01", "15"), ("lime", "10", "62")]
        for text, value in zip(places, values, strict=True)
    ]
    assert "+1.000 ± 0.000" in bench.drawn(lines, bench.RANKED[:1], ["lime"], "contributions")
    assert "4.000 ± 2.000" in bench.drawn(lines, bench.RANKED[:1], ["lime"])
