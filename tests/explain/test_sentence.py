"""The sentence of a proof: Python and the page say the same, and what is said is true."""

import json
import math
from typing import Any

import numpy as np
import pytest

from keytokens import MASK
from keytokens.app.explorer.page import script
from keytokens.explain import Documents, Explanation
from keytokens.explain.certificate import Told, listed, percent, sentences
from keytokens.explain.format import label_name
from keytokens.model.losses import probabilities
from keytokens.model.weighting import WEIGHTINGS
from keytokens.proof.tokens import ProvedSet

from ..proof.cases import FILE
from ..proof.test_cases import described

CASES = [case for case in json.loads(FILE.read_text("ascii")) if "ngrams" in case]
# with quotes, line breaks, markup, one to be cut, and the same word again
SPELLED = ['say "no"', "two\nlines", "x" * 70, "<b>", "same", "same", "{label}", "d'or", "\x1b[1m"]
CLASSES = ['"quoted"', "it's", "two\nlines", "", "<b>", "y" * 70, *map(str, range(14))]

PAGE = """([cases, sentences]) => cases.map((c) => {
    const phi = weightingOf(c.weighting);
    const logWeight = c.unit.map((u, t) => Math.log(u) + Math.log(phi.of(c.amounts[t])));
    const values = c.intercepts.map((_, k) => c.values.map((row) => row[k]));
    const votes = votesOf(logWeight, values, c.label, c.sink ? Math.log(c.sink) : -Infinity, c.intercepts);
    const [first, size, token] = [0, 1, 2].map((i) => c.ngrams.map((row) => row[i]));
    const phrase = new Phrase({ length: c.length, first, size, token, occurrences: c.amounts, votes, phi });
    const model = { classes: c.classes.map((name) => ({ name })), sentences, two: c.classes.length === 2,
        said: Model.prototype.said, chance: (p) => p };
    const known = c.names.length > 0;
    const e = { model, votes, phrase, label: c.label, probability: c.probability, names: c.names, text: c.text,
        words: c.words, read: { first, size }, sufficient: sufficientTokens(votes), flip: flipTokens(votes),
        sufficientWords: known ? sufficientWords(phrase) : null, flipWords: known ? flipWords(phrase) : null };
    return [true, false].map((inWords) => sentencesOf(e, inWords));
})"""


def explanation(case: dict[str, Any], turn: int) -> Explanation:
    """The case as a text of odd words, under odd names of classes."""
    spelled = [SPELLED[(i + turn) % len(SPELLED)] for i in range(case["length"])]
    covered = {i for start, n, _ in case["ngrams"] for i in range(start, start + n)}
    spelled = [word if i in covered or i % 3 else MASK for i, word in enumerate(spelled)]
    ends = np.cumsum([len(word) + 1 for word in spelled], dtype=int) - 1
    words = np.column_stack([ends - [len(word) for word in spelled], ends])
    amounts, values = np.array(case["amounts"], int), np.array(case["values"], float)
    values = values.reshape(len(amounts), len(case["intercepts"]))
    unit = np.array(case["unit"], float)
    weight = unit * WEIGHTINGS[case["weighting"]](amounts)
    total = weight.sum() + case["sink"]
    intercepts = np.array(case["intercepts"], float)
    F = (weight @ values + case["sink"] * intercepts) / total if total else intercepts
    first, size, token = np.array(case["ngrams"], int).reshape(-1, 3).T
    chances = probabilities(F[1:, None] - F[0] if len(F) == 2 else F[:, None])[:, 0]
    return Explanation(
        Documents(
            texts=[" ".join(spelled)],
            words=words.reshape(-1, 2),
            first=first,
            size=size,
            token=token,
            names=[" ".join(spelled[f : f + n]) for f, n, _ in _firsts(case)],
            log_weight=np.log(weight),
            values=values,
            occurrences=amounts,
            word_ends=np.array([0, case["length"]]),
            use_ends=np.array([0, len(first)]),
            token_ends=np.array([0, len(amounts)]),
            sink_log_weight=math.log(case["sink"]) if case["sink"] else -math.inf,
            sink_values=intercepts,
            scores=F[None],
            probabilities=chances[None],
            classes=CLASSES[: len(F)],
            counts=case["weighting"],
        )
    )


def _firsts(case: dict[str, Any]) -> list[list[int]]:
    """One n-gram of each token."""
    return [next(one for one in case["ngrams"] if one[2] == t) for t in range(len(case["amounts"]))]


RECORDS = [explanation(case, turn) for turn, case in enumerate(CASES)]


def test_the_page_says_the_same(browser: Any) -> None:
    names = ("weighting", "model", "proof/votes", "proof/tokens", "proof/phrase", "proof/words", "proof/sentence")
    page = browser.new_page()
    page.add_script_tag(content=script(*(f"{name}.js" for name in names)))
    asked = [
        {
            **case,
            "weighting": described(case["weighting"]),
            "label": e.prediction.winner,
            "probability": e.probability,
            "classes": [label_name(name) for name in e.prediction.classes],
            "names": list(e.names),
            "text": e.text,
            "words": [
                {"start": a, "end": b, "form": None if e.text[a:b] == MASK else e.text[a:b]}
                for a, b in e.words.tolist()
            ],
        }
        for case, e in zip(CASES, RECORDS, strict=True)
    ]
    found = page.evaluate(PAGE, [asked, sentences()])
    page.close()
    for case, e, (words, items) in zip(CASES, RECORDS, found, strict=True):
        assert words == e.certificate.said._asdict(), case["name"]
        assert items == e.certificate.of_items._asdict(), case["name"]


def test_every_kind_of_sentence_is_said() -> None:
    said = " ".join(e.certificate.sentence for e in RECORDS)
    for part in (
        "because of",
        "Keep it:",
        "(fewer are not enough)",
        "(none can be left out",
        "ahead of all other classes",
        "Whatever is deleted, it stays",
        "Nothing in this text decides",
        "is unknown.",
        "are unknown.",
        "Without ",
        "To change it you must delete at least",
        "Without them it is",
        "No deletion that leaves a known word changes it.",
        "To rounding",
        "(2 times)",
        " tokens",
        "two lines",
        "x" * 59 + "…",
        '"say "no""',
    ):
        assert part in said, part
    assert not any(word in said for word in ("logit", "sink", "intercept", "\n"))


@pytest.mark.parametrize("e", RECORDS, ids=lambda e: e.text[:20])
def test_the_least_probability_holds_for_words(e: Explanation) -> None:
    """Masking words outside the sufficient set, in every way: the label stays, and is as probable as is said."""
    certificate, kept = e.certificate, e.sufficient_words
    if certificate.silent or kept.status == "bounds":
        return
    phrase = certificate.in_words.phrase
    held = set(certificate.in_words.kept.indices)
    least = 1.0
    for code in range(1 << phrase.length):
        mask = tuple(i for i in range(phrase.length) if code >> i & 1 and i not in held)
        left = phrase.left_by(mask)[1]
        weight = np.where(left, np.exp(e.documents.log_weight) * phrase.phi(left) / phrase.weight, 0)
        sink = math.exp(e.documents.sink_log_weight)
        if weight.sum() + sink == 0:
            continue
        F = (weight @ e.documents.values + sink * e.documents.sink_values) / (weight.sum() + sink)
        least = min(least, float(np.exp(F - F.max())[e.prediction.winner] / np.exp(F - F.max()).sum()))
    said = certificate.said
    text = said.keep if kept.size else said.because
    floor = int(text.split("(at least ")[-1].split("\xa0%")[0])
    assert floor <= 100 * least + 1e-7


def test_names_of_a_set() -> None:
    def names(*given: str) -> str:
        return listed(Told("words", ProvedSet(tuple(range(len(given))), 0, "minimum"), given))

    assert names("a") == '"a"'
    assert names("a", "b") == '"a" and "b"'
    assert names("a", "b", "c", "d") == '"a", "b", "c" and "d"'
    assert names("a", "b", "c", "d", "a") == '"a" (2 times), "b", "c" and "d"'
    assert names("a", "b", "c", "d", "a", "e") == '"a" (2 times), "b", "c" and 2 more'
    assert listed(Told("instances", ProvedSet((3, 1), 0, "minimum"), ["3", "1"])) == "instances 3 and 1"


@pytest.mark.parametrize(
    ("p", "says"), [(0.0, "0"), (0.001, "under 1"), (0.5, "50"), (0.985, "98"), (0.997, "over 99"), (1.0, "100")]
)
def test_percent(p: float, says: str) -> None:
    assert percent(p) == f"{says}\xa0%"
