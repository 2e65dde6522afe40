"""The shared cases: Python and the page answer each of them, and both answers are held against the same truth."""

import json
import math
from typing import Any

import numpy as np
import pytest

from keytokens.app.explorer.page import script
from keytokens.model.weighting import WEIGHTINGS
from keytokens.proof import (
    Phrase,
    Votes,
    flip,
    flip_occurrences,
    flip_words,
    label_of,
    ranges_deleting,
    sufficient,
    sufficient_occurrences,
    sufficient_words,
)

from .cases import DELETIONS, FILE, Case, document_of, made, text_of, written
from .reference import bits, labels_of_amounts, occurrences_suffice

CASES: list[Case] = json.loads(FILE.read_text("ascii"))
Answer = dict[str, Any]

PAGE = """(cases) => {
    const read = (found) => ({ ...found, members: found.positions ?? found.indices, label_after: found.labelAfter });
    return cases.map((c) => {
        const phi = weightingOf(c.weighting);
        const logWeight = c.unit.map((u, t) => Math.log(u) + Math.log(phi.of(c.amounts[t])));
        const values = c.intercepts.map((_, k) => c.values.map((row) => row[k]));
        const votes = votesOf(logWeight, values, c.truth.label, c.sink ? Math.log(c.sink) : -Infinity, c.intercepts);
        const answer = { label: labelOf(votesOf(logWeight, values, 0, votes.sinkLogWeight, c.intercepts)) };
        if (!votes.tokens) return answer;
        answer.sufficient = read(sufficientTokens(votes));
        answer.flip = read(flipTokens(votes));
        answer.deleting = rangesDeleting(votes, c.deletions);
        if (!c.ngrams) return answer;
        const [first, size, token] = [0, 1, 2].map((i) => c.ngrams.map((row) => row[i]));
        const phrase = new Phrase({ length: c.length, first, size, token, occurrences: c.amounts, votes, phi });
        answer.occurrences = [sufficientOccurrences, flipOccurrences].map((ask) => read(ask(votes, c.amounts, phi)));
        answer.words = [sufficientWords, flipWords].map((ask) => read(ask(phrase)));
        return answer;
    });
}"""


def python_answer(case: Case) -> Answer:
    def read(found: Any) -> Answer:
        return {**vars(found), "size": found.size, "members": found.indices}

    weight = np.log(case["unit"]) + np.log(WEIGHTINGS[case["weighting"]](case["amounts"]))
    values = np.reshape(case["values"], (len(weight), len(case["intercepts"])))
    sink = (math.log(case["sink"]) if case["sink"] else -math.inf, case["intercepts"])
    answer: Answer = {"label": label_of(Votes.of(weight, values, 0, *sink))}
    votes = Votes.of(weight, values, case["truth"]["label"], *sink)
    if not len(weight):
        return answer
    answer |= {"sufficient": read(sufficient(votes)), "flip": read(flip(votes))}
    answer["deleting"] = ranges_deleting(votes, DELETIONS)
    if "ngrams" in case:
        kind, amounts = case["weighting"], case["amounts"]
        first, size, token = np.array(case["ngrams"]).T
        phrase = Phrase(case["length"], first, size, token, votes, kind)
        asked = (sufficient_occurrences, flip_occurrences)
        answer["occurrences"] = [read(ask(votes, amounts, kind)) for ask in asked]
        answer["words"] = [read(ask(phrase)) for ask in (sufficient_words, flip_words)]
    return answer


def fits(found: Answer, fewest: int | None, exact: bool) -> None:
    """What is said of a set is true of the truth."""
    size, status = found["size"], found["status"]
    assert len(found["members"]) == size
    if status == "none":
        assert fewest is None
    elif status == "bounds" and not size:
        assert fewest is None or found["lower"] <= fewest
    else:
        assert found["lower"] <= fewest <= size
        assert (status == "minimum") == (found["lower"] == size)
    assert status in ("minimum", "none") or not exact


def check(case: Case, answer: Answer) -> None:
    truth, two = case["truth"], len(case["intercepts"]) == 2
    assert answer["label"] == truth["label"]
    if "sufficient" not in truth:
        assert set(answer) == {"label"}
        return
    doc, kept, gone = document_of(case), answer["sufficient"], answer["flip"]
    fits(kept, truth["sufficient"], two)
    fits(gone, truth["flip"], True)
    assert doc.is_sufficient(bits(kept["members"]))
    if gone["size"]:
        assert doc.labels[(1 << doc.tokens) - 1 - bits(gone["members"])] == gone["label_after"] != truth["label"]
    assert np.array(answer["deleting"]) == pytest.approx(np.array(truth["deleting"]), abs=1e-9)
    if "ngrams" in case:
        check_text(case, answer)


def check_text(case: Case, answer: Answer) -> None:
    truth, exact = case["truth"], len(case["intercepts"]) == 2
    text = text_of(case)
    labels = labels_of_amounts(text.unit, case["amounts"], case["weighting"])

    def tally(found: Answer) -> list[int]:
        return np.bincount(np.array(found["members"], np.intp), minlength=len(case["amounts"])).tolist()

    kept, gone = answer["occurrences"]
    fits(kept, truth["occurrences"]["sufficient"], exact)
    fits(gone, truth["occurrences"]["flip"], True)
    assert occurrences_suffice(tally(kept), labels, truth["label"], bool(case["sink"]))
    if gone["size"]:
        left = tuple(c - d for c, d in zip(case["amounts"], tally(gone), strict=True))
        assert labels[left] == gone["label_after"] != truth["label"]
    kept, gone = answer["words"]
    local = WEIGHTINGS[case["weighting"]].additive or max(size for _, size, _ in case["ngrams"]) == 1
    fits(kept, truth["words"]["sufficient"], False)
    fits(gone, truth["words"]["flip"], local)
    assert text.is_sufficient(kept["members"])
    if gone["size"]:
        after = text.labels[tuple(int(i not in gone["members"]) for i in range(case["length"]))]
        assert after == gone["label_after"] != truth["label"]


def test_the_file_is_what_enumeration_says() -> None:
    assert FILE.read_text("ascii") == written(made())


def test_the_cases_are_of_every_kind() -> None:
    sizes = {len(case["intercepts"]) for case in CASES}
    assert {2, 3, 20} <= sizes
    assert any(amount % 1 for case in CASES for amount in case["amounts"])
    assert {case["weighting"] for case in CASES} == set(WEIGHTINGS)
    flips = [case["truth"].get("words", {}).get("flip", 0) for case in CASES]
    assert flips.count(None) > 3
    assert sum(python_answer(case)["sufficient"]["tight"] for case in CASES if case["amounts"]) > 3, "ties"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_python(case: Case) -> None:
    check(case, python_answer(case))


def test_the_page(browser: Any) -> None:
    names = ("weighting", "proof/votes", "proof/tokens", "proof/ranges", "proof/phrase", "proof/words")
    page = browser.new_page()
    page.add_script_tag(content=script(*(f"{name}.js" for name in names)))
    asked = [{**case, "weighting": described(case["weighting"]), "deletions": DELETIONS} for case in CASES]
    for case, answer in zip(CASES, page.evaluate(PAGE, asked), strict=True):
        check(case, answer)
        same_as_python(case, answer)
    page.close()


def described(name: str) -> Answer:
    one = WEIGHTINGS[name]
    return {"name": one.name, "value": one.value, "additive": one.additive}


def same_as_python(case: Case, answer: Answer) -> None:
    """Sets of tokens are the same ones; of the others sizes and bounds are."""
    theirs = python_answer(case)
    if not case["amounts"]:
        return
    for name in ("sufficient", "flip"):
        for key in ("size", "lower", "status", "tight", "label_after"):
            assert answer[name][key] == theirs[name][key], (case["name"], name, key)
    for name in ("occurrences", "words") if "ngrams" in case and len(case["intercepts"]) == 2 else ():
        for ours, other in zip(answer[name], theirs[name], strict=True):
            assert [ours[k] for k in ("size", "lower", "status")] == [other[k] for k in ("size", "lower", "status")]
