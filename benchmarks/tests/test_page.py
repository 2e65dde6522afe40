"""The page of benchmarks from made-up results: ratios, bars, sentences, links."""

import re
from pathlib import Path

import pytest

from benchmarks import page, runs
from benchmarks.measure import write_csv


def cost(contender: str, which: str, number: int, fit: float, documents: int = 25_000, words: int = 0) -> dict:
    record = {"contender": contender, "set": which, "documents": documents, "words": words, "round": number}
    record |= {"text_mb": 10.0, "fit_s": fit, "fit_mb": 30.0, "predict_s": fit / 2, "predict_one_ms": 2.0}
    if contender == "fasttext_5":
        record |= {"predict_one_ms": 0.5, "fit_mb": 200.0, "predict_alone_s": 0.1, "fit_alone_s": fit - 0.5}
    return record | {"whole_size_mb": 7.0}


def results(ours: float) -> dict[str, list[dict]]:
    """keytokens takes `ours` seconds and fastText 10, then both twice as long: the ratio is the same."""
    rounds = [(name, k, s * (k + 1)) for k in range(2) for name, s in (("keytokens", ours), ("fasttext_5", 10.0))]
    speed = [cost(name, which, k, s) for which in ("imdb", "twenty") for name, k, s in rounds]
    scaling = [cost(name, "short", k, s * n / 1e6, n) for n in (1_000, 1_000_000) for name, k, s in rounds]
    scaling += [cost(name, "length", k, s, 1_000, words) for words in (10, 100) for name, k, s in rounds]
    judged = {"keytokens": ("standard", 0.9), "nbsvm": ("tuned", 0.92), "tfidf_lr": ("standard", 0.85)}
    return {
        "machine": [{"what": "date", "value": "2026-01-02 03:04 UTC"}, {"what": "cores", "value": "2"}],
        "speed": speed,
        "scaling": scaling,
        "explain": [
            {"method": method, "text": 0, "words": 174, "round": 0, "seconds": seconds}
            for method, seconds in (("keytokens", 0.002), ("keytokens_words", 0.02), ("lime", 4.0), ("shap", 1.0))
        ],
        "evaluation": [{"threads": 1, "round": 1, "read_mb": 100, "evaluate_s": 0.03, "read_s": 0.01}],
        "accuracy": [
            {"set": "imdb", "fold": k, "contender": who, "way": way, "options": "C=1", "accuracy": score + k / 100}
            for who, (way, score) in judged.items()
            for k in range(2)
        ],
        "tuning": [{"set": "imdb", "fold": 0, "contender": "nbsvm", "options": "C=1", "accuracy": 0.9}],
    }


def stored(folder: Path, found: dict[str, list[dict]]) -> Path:
    for name, records in found.items():
        write_csv(folder / f"{name}.csv", records)
    return folder


def bars_of(text: str) -> dict[str, list[str]]:
    table = text[text.index("## Asked") : text.index("## Where")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:1] == "|"]
    return {row[0]: row[1:] for row in rows[2:]}


@pytest.mark.parametrize("ours, said", [(3.9, "met"), (4.1, "**MISSED**")])
def test_bars_are_judged_by_the_ratio_of_rounds(tmp_path, ours, said):
    found = bars_of(page.page(page.loaded(stored(tmp_path, results(ours))), {}, {}))
    ratio = f"{ours / 10:.3f}"
    assert found["raw text to bigram model, IMDB, in times of fastText"] == [
        "at most 0.4",
        f"{ratio} ({ratio} to {ratio})",
        said,
    ]
    assert found["raw text to bigram model, a million short texts, in times of fastText"][-1] == "met"
    assert found["explanation with its sets, one text at a time, times as fast as LIME"][1:] == ["2,000", "met"]
    assert found["explanation with its sets, one text at a time, times as fast as SHAP's partition explainer"][1:] == [
        "500",
        "**MISSED**",
    ]
    assert found["loss and gradient, in times of reading its arrays, 1 thread"][1:] == ["3.00", "**MISSED**"]
    assert found["peak memory of a fit, in sizes of the raw text, IMDB"][-1] == "met"
    best = found["accuracy on imdb, less that of the best peer"]
    assert best[1:] == ["-2.00 points, ahead in 0 of 2 folds (NB-SVM, tuned)", "**MISSED**"]


def test_the_page_says_where_a_peer_wins(tmp_path):
    text = page.page(page.loaded(stored(tmp_path, results(3.0))), {}, {})
    wins = text[text.index("## Where") : text.index("## Accuracy")]
    assert "- fastText predicts one text faster (IMDB, 25,000 reviews: 0.500 against 2.00 ms;" in wins
    assert "- NB-SVM with chosen options is right more often (imdb: by 2.00 points)." in wins
    assert "fastText with its lines ready predicts faster than keytokens from raw text" in wins
    assert "learns faster (" not in wins
    assert "TF-IDF" not in wins
    assert "date" in text
    assert "2026-01-02 03:04 UTC" in text


def test_links_and_pictures_of_the_page_are_there(tmp_path):
    pytest.importorskip("matplotlib")
    found = results(3.0)
    found["frontier"] = [
        {"set": "imdb", "brevity": b, "accuracy": 0.9 - b / 100, "sufficient": 7 - b, "flips": 3} for b in range(3)
    ]
    text = page.write(stored(tmp_path / "results", found), tmp_path / "docs.md")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert {Path(link).name for link in links if link.endswith(".svg")} == {
        f"bench-{name}.svg" for name in ("accuracy", "speed", "growth", "explain", "frontier")
    }
    assert all((tmp_path / link).stat().st_size > 0 for link in links)
    assert "## Accuracy against brevity" in text
    assert "```python" not in text


def test_a_page_of_some_files_only(tmp_path):
    some = {"explain": results(3.0)["explain"]}
    found = bars_of(page.page(page.loaded(stored(tmp_path, some)), {}, {}))
    assert found["raw text to bigram model, IMDB, in times of fastText"] == ["at most 0.4", "–", "not measured"]
    with pytest.raises(SystemExit, match="holds no results"):
        page.write(tmp_path / "nowhere", tmp_path / "benchmarks.md")


def test_ratios_are_taken_round_by_round():
    records = [
        {"contender": name, "round": k, "fit_s": seconds}
        for k, pair in enumerate([(1.0, 2.0), (30.0, 10.0), (4.0, 4.0)])
        for name, seconds in zip(("a", "b"), pair, strict=True)
    ]
    assert runs.ratios(records, "fit_s", "a", "b").values == (0.5, 3.0, 1.0)
    assert runs.ratios(records[:-1], "fit_s", "a", "b").values == (0.5, 3.0)
    assert runs.ratios(records, "fit_s", "a", "c") is None


def test_repetitions_are_averaged():
    records = [{"set": "imdb", "tokens": 10.0, "fold": k, "accuracy": 0.8 + k / 10} for k in (0.0, 1.0)]
    lines = page.any_table(records).splitlines()
    assert [cell.strip() for cell in lines[2].strip("|").split("|")] == ["imdb", "10", "0.85"]
    assert len(lines) == 3


def test_a_file_without_repetitions_stands_as_it_is(tmp_path):
    records = [{"what": "a | b", "gain": gain} for gain in (0.5, 0.25)]
    assert [line.split(" | ")[-1].strip(" |") for line in page.any_table(records).splitlines()[2:]] == ["0.5", "0.25"]
    assert "a \\| b" in page.any_table(records)
    (tmp_path / "results").mkdir()
    write_csv(tmp_path / "tried.csv", records)
    assert page.loaded(tmp_path / "results")["tried"] == records
