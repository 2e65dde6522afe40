"""`keytokens demo`: the whole path on real film reviews that come with an extra; nothing is downloaded."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from ...base.files import check_output, write_whole
from ...estimators.text import KeyTokenClassifier
from ...explain.html import documents_page
from ...explain.terminal import explanation_text, key_tokens_text, wants_colour
from ...explain.text import Explanation
from ...io.corpora import imdb_reviews
from .common import JsonOption, ThreadsOption, save_model, say, score_line, show_json, width
from .fit import held_out_score


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the model and the page.")] = Path(
        "keytokens-demo"
    ),
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Real IMDB reviews, no download: train, score, explain, write a page."""
    check_output(output, "explanations.html")
    texts, labels = imdb_reviews()
    say(f"{len(texts):,} IMDB reviews, {len(set(labels))} classes", quiet=json)
    options: dict[str, Any] = {"threads": threads, "verbose": 0 if json else 1, "random_state": 0}
    score = held_out_score(texts, labels, options, 0.2, 0)
    say(score_line(score), quiet=json)
    begin = time.perf_counter()
    n_shown = len(texts) // 100  # explained below, so not trained on
    clf = KeyTokenClassifier(**options).fit(texts[n_shown:], labels[n_shown:])
    seconds = time.perf_counter() - begin
    say(f"trained on {len(texts) - n_shown:,} reviews in {seconds:.1f} s: {len(clf.vocabulary_):,} tokens", quiet=json)
    shown = [(f"A {label} review", _example(clf, texts[:n_shown], label)) for label in clf.classes_.tolist()]
    page, model = output / "explanations.html", output / "model"
    save_model(clf, model)
    key_tokens = clf.key_tokens(20)
    write_whole(page, documents_page("keytokens demo", score_line(score), shown, key_tokens).encode("utf-8"))
    if json:
        show_json(
            {
                "score": score,
                "tokens": len(clf.vocabulary_),
                "seconds": seconds,
                "model": str(model),
                "page": str(page),
                "explanations": [explanation.to_dict() for _, explanation in shown],
            }
        )
        return
    colour = wants_colour(sys.stdout)
    say()
    say(key_tokens_text({label: found[:8] for label, found in key_tokens.items()}, colour=colour, width=width()))
    for caption, explanation in shown:
        say(f"\n{caption}, not seen in training:\n")
        say(explanation_text(explanation, colour=colour, width=width()))
    say(
        f"\nLook at {page} in a browser. Then:\n"
        f'  keytokens explain {model} "a dull plot, but great acting"\n'
        "  keytokens fit your.csv -o model/        (columns are guessed; --text and --label name them)\n"
        "  keytokens predict model/ new.csv -o out.csv"
    )


def _example(clf: KeyTokenClassifier, texts: list[str], label: str) -> Explanation:
    """A short review with this label that was not trained on: confident, with something to say against it."""
    short = [text for text in texts if 400 <= len(text) <= 900]
    found = [e for e in map(clf.explain, short) if e.label == label and 0.85 < e.probability < 0.99]
    return min(found, key=lambda e: abs(e.flip.size - 6))
