"""What the page is made of, without a browser: containers, numbers, choice of texts, the policy."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import posixpath
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from keytokens import InputError, KeyTokenClassifier
from keytokens.app.explorer import explorer_page, page
from keytokens.app.explorer.documents import AVERAGE, choose
from keytokens.app.explorer.model import packed_alphabet
from keytokens.app.explorer.pack import narrowest, pack, unpack
from keytokens.app.explorer.page import _read, modules, script, style
from keytokens.estimators.evaluation import Answers, Evaluation, evaluate
from keytokens.text.alphabet import IDEOGRAPHS, LETTERS, MARKS, SYMBOLS, _ranges

from ...corpus import reviews
from .corpus import HOSTILE, variant

anything = st.text(st.characters(exclude_categories=()), max_size=20)


@given(
    st.dictionaries(anything, anything | st.integers() | st.none() | st.lists(anything, max_size=3), max_size=4),
    arrays.arrays(st.sampled_from(["f4", "f8", "u1", "u4", "i4"]), arrays.array_shapes(max_dims=2, max_side=6)),
)
def test_containers_come_back_as_they_were(facts, array):
    found, got = unpack(pack(facts, {"x": array, "empty": np.zeros(0, np.float32)}))
    joined = json.loads(json.dumps(facts))  # a pair of surrogates and the character it stands for are one string here
    assert found == joined
    assert got["x"].dtype == array.dtype.newbyteorder("<")
    np.testing.assert_array_equal(got["x"], array)
    assert got["empty"].shape == (0,)


def test_containers_are_the_same_whenever_they_are_made():
    assert pack({"a": 1}, {"x": np.arange(9)[::2].astype("u4")}) == pack(
        {"a": 1}, {"x": np.arange(0, 9, 2).astype("u4")}
    )


@given(arrays.arrays("f8", 5, elements=st.floats(-1e6, 1e6)))
def test_no_number_is_rounded(array):
    np.testing.assert_array_equal(narrowest(array).astype("f8"), array)
    single = array.astype("f4")
    assert narrowest(single.astype("f8")).dtype == np.float32


def test_the_alphabet_is_the_one_of_the_text_reader():
    tables = {"letters": LETTERS, "ideographs": IDEOGRAPHS, "marks": MARKS, "symbols": SYMBOLS}
    assert {name: _ranges(packed) for name, packed in packed_alphabet().items()} == tables


@given(
    st.lists(st.tuples(st.integers(0, 3000), st.booleans(), st.floats(0.5, 1)), min_size=1, max_size=40),
    st.integers(1, 12),
)
def test_chosen_texts_fit_and_favour_the_wrong(rows, most):
    texts = ["x" * length for length, _, _ in rows]
    P = np.array([[p, 1 - p] for _, _, p in rows])
    truth = np.array([0 if right else 1 for _, right, _ in rows])
    found = Evaluation([0, 1], 2, Answers.of(P, truth), np.zeros(len(rows), np.uint8))
    chosen = choose(texts, found, most)
    taken = chosen.rows.tolist()
    assert taken == sorted(set(taken))
    if taken == list(range(len(rows))) and "All" in chosen.why:
        return
    assert len(taken) <= most
    assert sum(len(texts[row]) for row in taken) <= AVERAGE * most
    wrong = [row for row in range(len(rows)) if truth[row]]
    if max(map(len, texts)) * most <= AVERAGE * most:
        assert len([row for row in wrong if row in taken]) >= min(len(wrong), most // 2)


# --- the page


def test_names_are_unique_across_modules():
    """Modules are joined into one script: a name twice would be one name."""
    names = re.findall(r"^(?:async )?(?:function\*?|class|const|let) (\w+)", script(), re.MULTILINE)
    assert len(names) > 100
    assert len(names) == len(set(names)), sorted({name for name in names if names.count(name) > 1})
    assert not re.search(r"^(?:const|let) (?:\w+,|\w+ = [^;({\[]*,$|[{\[])", script(), re.MULTILINE), "one name a line"
    assert not re.search(r"^(import|export)\b", script(), re.MULTILINE)


def test_every_import_is_used_and_exported():
    for module in modules():
        source = _read(module)
        for names, path in re.findall(r'^import \{([^}]*)\} from "(\.\.?/[a-z/]+\.js)";', source, re.MULTILINE):
            other = posixpath.normpath(posixpath.join(posixpath.dirname(module), path))
            for name in re.findall(r"\w+", names):
                exported = rf"^export (?:async )?(?:function|class|const) {name}\b"
                assert re.search(exported, _read(other), re.MULTILINE), f"{other} does not export {name} to {module}"
                assert len(re.findall(rf"\b{name}\b", source)) > 1, f"{module} does not use {name}"


def test_every_file_is_part_of_the_page():
    static = Path(page.__file__).parent / "static"
    found = {file.relative_to(static).as_posix() for file in static.rglob("*.*")}
    assert found == {*modules(), "page.css", "body.html"}


FORBIDDEN = (
    "innerHTML insertAdjacentHTML document.write eval( Function( XMLHttpRequest WebSocket sendBeacon http:// https://"
)


def test_nothing_in_the_code_makes_markup_or_asks_the_network():
    for module in modules():
        source = _read(module).replace("http://www.w3.org/2000/svg", "")  # a name, not an address
        assert not [word for word in FORBIDDEN.split() if word in source], module
        assert ("fetch(" in source) == (module == "source.js")


def policy_of(page):
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    return dict(part.split(" ", 1) for part in policy.split("; "))


def test_the_policy_allows_this_script_and_this_style_alone(tmp_path):
    clf, texts, labels = variant("two classes")
    clf.report(tmp_path / "report.html", texts, labels, title="</title><script>1</script>")
    page = (tmp_path / "report.html").read_text("utf-8")
    policy = policy_of(page)
    assert policy["default-src"] == "'none'"
    assert set(policy) == {"default-src", "script-src", "style-src", "base-uri", "form-action"}
    (code,) = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    (look,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    for kind, content in (("script-src", code), ("style-src", look)):
        assert policy[kind] == f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
    assert (code, look) == (script(), style())
    assert "<title>&lt;/title&gt;" in page
    assert not re.search(r"\son\w+=", re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL))
    assert policy_of(explorer_page("x", source="data/"))["connect-src"] == "'self'"


def test_contrast():
    """WCAG AA: 4.5 for text, in light and in dark, on paper, on cards and on the strongest shade."""
    pairs = dict(re.findall(r"--([\w-]+): light-dark\((.*)\);", style()))
    for side in (0, 1):
        colours = {name: parsed(re.split(r", (?=#|rgb)", both)[side]) for name, both in pairs.items()}
        for ground in ("paper", "card"):
            for name in ("ink", "soft", "right", "wrong", "p-solid", "n-solid", *(f"c{k}" for k in range(3, 9))):
                if ground == "card" and name.startswith("c"):
                    continue  # classes beyond two stand on paper only
                assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground, side)
            for shade in ("p", "n"):
                assert contrast(colours["ink"], over(colours[shade], colours[ground])) >= 4.5, (shade, ground, side)
        assert contrast(colours["edge"], colours["paper"]) >= 3, "borders of controls"
        assert contrast(colours["paper"], colours["ink"]) >= 4.5


def parsed(colour):
    if colour.startswith("#"):
        return [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)] + [1.0]
    red, green, blue, alpha = map(float, re.findall(r"[\d.]+", colour))
    return [red / 255, green / 255, blue / 255, alpha]


def over(colour, ground):
    return [colour[3] * c + (1 - colour[3]) * g for c, g in zip(colour[:3], ground[:3], strict=True)]


def luminance(colour):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


# --- the estimator


def test_a_pruned_model_keeps_the_most_decisive_tokens():
    """By the explanations of the training texts, one by one: what each token says, in size, over all of them."""
    texts, labels = reviews(80)
    clf = KeyTokenClassifier(threads=1).fit(texts, labels)
    said = dict.fromkeys(clf.vocabulary_.tokens, 0.0)
    for text in texts:
        for use in clf.explain(text).tokens:
            said[use.text] += abs(use.contribution)
    small = clf.pruned(20)
    kept = set(small.vocabulary_.tokens)
    assert len(kept) == 20
    assert min(said[token] for token in kept) >= max(said[t] for t in said if t not in kept) * (1 - 1e-5)
    assert list(small.vocabulary_.tokens) == [token for token in clf.vocabulary_.tokens if token in kept]
    np.testing.assert_array_equal(clf.pruned(10**9).predict_proba(texts), clf.predict_proba(texts))


def test_a_pruned_model_is_the_model_of_texts_without_the_other_tokens():
    """Two roads: drop tokens from the model, or multiply their columns of counts by 0."""
    texts, labels = reviews(100)
    clf = KeyTokenClassifier((1, 1), threads=1).fit(texts, labels)
    small = clf.pruned(12)
    gone = set(clf.vocabulary_.tokens) - set(small.vocabulary_.tokens)
    assert len(gone) == len(clf.vocabulary_) - 12
    left = [" ".join(word for word in text.split() if word not in gone) for text in texts]
    np.testing.assert_allclose(small.predict_proba(texts), clf.predict_proba(left), atol=1e-12)


def test_report_refuses_what_it_cannot_use(tmp_path):
    clf, texts, labels = variant("two classes")
    page = tmp_path / "report.html"
    for arguments, message in (
        ((texts, labels[:-1]), r"report: `labels` must have one entry for each of the \d+ texts"),
        ((texts, [None, *labels[1:]]), r"report: `labels\[0\]` must be a label; saw None"),
        (("one text", labels), "report: `texts` must be a list of strings"),
    ):
        with pytest.raises(InputError, match=message):
            clf.report(page, *arguments)
    with pytest.raises(InputError, match="`max_tokens` must be a whole number of at least 1 or None"):
        clf.report(page, texts, labels, max_tokens=0)
    with pytest.raises(InputError, match="`max_bytes` must be a whole number of at least 300000 or None"):
        clf.report(page, texts, labels, max_bytes=0)
    assert not page.exists()


def test_a_large_vocabulary_stays_small(tmp_path):
    """Two numbers a token and class: 50,000 tokens and everything else in less than 3 MB."""
    rng = np.random.RandomState(0)
    V = 50_000
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = sorted({"".join(rng.choice(letters, rng.randint(3, 11))) for _ in range(int(1.2 * V))})[:V]
    rng.shuffle(words)
    texts = [" ".join(words[i : i + 500]) for i in range(0, V, 500)]
    clf = KeyTokenClassifier((1, 1), threads=1, max_iter=3).fit(texts, [i % 2 for i in range(len(texts))])
    clf.attention_ = rng.normal(size=V).astype(np.float32)  # worst case: numbers that no packing makes smaller
    clf.values_ = rng.normal(size=(1, V)).astype(np.float32)
    clf.mean_attention_ = rng.rand(V).astype(np.float32)
    facts = clf.report(tmp_path / "report.html", texts, [0] * len(texts))
    assert facts["tokens"] == V
    assert facts["bytes"] == (tmp_path / "report.html").stat().st_size < 3_000_000


@pytest.mark.parametrize("max_bytes", [320_000, 500_000, None])
def test_a_page_keeps_its_budget_and_says_what_it_cost(tmp_path, max_bytes):
    """Twenty classes: fewer texts, then a smaller model, whose change of the shown texts is measured."""
    clf, texts, labels = large()
    page = tmp_path / "report.html"
    facts = clf.report(page, texts, labels, max_bytes=max_bytes)
    assert facts["bytes"] == page.stat().st_size
    assert (facts["n"], facts["accuracy"]) == (len(texts), evaluate(clf, texts, labels).accuracy), "of the whole model"
    if max_bytes is None:
        assert (facts["tokens"], facts["left_out"]) == (len(clf.vocabulary_), [])
        return
    assert facts["bytes"] <= max_bytes
    rows = rows_of(page)
    assert facts["shown"] == len(rows)
    said = " ".join(facts["left_out"])
    assert ("given texts are in this page" in said) == (len(rows) < len(texts))
    small = clf.shrunk(facts["tokens"])
    shown = [texts[row] for row in rows]
    change = np.abs(clf.predict_proba(shown) - small.predict_proba(shown)).max()
    [written] = re.findall(r"no probability by more than ([\d.]+),", said)
    assert 0 <= float(written) - change <= 0.001
    assert (f"{facts['tokens']:,} of the {len(clf.vocabulary_):,} tokens" in said) == (
        facts["tokens"] < facts["tokens_of"]
    )


@functools.cache
def large():
    rng = np.random.RandomState(0)
    words = np.array([f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in "bdfgklmnprstvxz"])
    labels = [k % 20 for k in range(600)]
    own = rng.permutation(len(words)).reshape(20, -1)
    texts = [" ".join(words[[*rng.choice(own[k], 4), *rng.choice(len(words), 60)]]) for k in labels]
    return KeyTokenClassifier((1, 2), threads=1).fit(texts, labels), texts, labels


def rows_of(page):
    [content] = re.findall(r'<script type="text/plain" id="kt-documents">([^<]*)<', page.read_text("utf-8"))
    return unpack(base64.b64decode(content))[1]["row"].tolist()


def test_hostile_texts_do_not_reach_the_markup(tmp_path):
    clf, texts, labels = variant("two classes")
    clf.report(tmp_path / "report.html", texts, labels)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert not any(text in page for text in HOSTILE if len(text) > 20)
