"""`keytokens demo`: the whole path on real film reviews that come with an extra; nothing is downloaded."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ...base.files import check_output
from ...estimators.text import KeyTokenClassifier
from ...explain.terminal import explanation_text, key_tokens_text, wants_colour
from ...explain.text import Explanation
from ...io.corpora import imdb_reviews
from ..jobs import FitJob, fit_table
from .common import JsonOption, Teller, ThreadsOption, save_model, say, show_json, width


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the model and the page.")] = Path(
        "keytokens-demo"
    ),
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Real IMDB reviews, no download: train, score, explain, write a page."""
    check_output(output, "report.html")
    texts, labels = imdb_reviews()
    say(f"{len(texts):,} IMDB reviews", quiet=json)
    job = FitJob(data=(texts, labels), output=output / "model", options={"threads": threads, "random_state": 0})
    done = fit_table(job, Teller(quiet=json), save_model)
    clf, seconds = done.model, done.seconds["fit"]
    say(f"trained on {len(texts):,} reviews in {seconds:.1f} s: {len(clf.vocabulary_):,} tokens", quiet=json)
    shown = [(f"A {label} review", _example(clf, texts[: len(texts) // 100], label)) for label in clf.classes_.tolist()]
    page = output / "report.html"
    clf.report(page, texts, labels, title="IMDB reviews")
    if json:
        show_json(
            {
                "score": done.score and done.score.to_dict(),
                "tokens": len(clf.vocabulary_),
                "seconds": seconds,
                "model": str(done.job.output),
                "page": str(page),
                "explanations": [explanation.to_dict() for _, explanation in shown],
            }
        )
        return
    colour = wants_colour(sys.stdout)
    say()
    say(key_tokens_text(clf.key_tokens(8), colour=colour, width=width()))
    for caption, explanation in shown:
        say(f"\n{caption}:\n")
        say(explanation_text(explanation, colour=colour, width=width()))
    say(
        f"\nLook at {page} in a browser. Then:\n"
        f'  keytokens explain {done.job.output} "a dull plot, but great acting"\n'
        "  keytokens fit your.csv -o model/        (columns are guessed; --text and --label name them)\n"
        "  keytokens predict model/ new.csv -o out.csv"
    )


def _example(clf: KeyTokenClassifier, texts: list[str], label: str) -> Explanation:
    """A short review with this label that a few words decide."""
    short = [text for text in texts if 400 <= len(text) <= 900]
    found = [e for e in map(clf.explain, short) if e.label == label and 0.85 < e.probability < 0.99]
    return min(found, key=lambda e: (e.sufficient_words.size, e.flip_words.size))
