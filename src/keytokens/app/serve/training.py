"""One run, in a process of its own: `python -m keytokens.app.serve.training`.

The first line on standard input is the task; the rest of it is never written, so its end means that the server is
gone, and the process ends too. On standard output: one JSON object a line, progress first, then the result.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...base.checks import check_labels
from ...base.errors import KeyTokensError
from ...base.progress import listening
from ...estimators.holdout import HeldOut, hold_out
from ...estimators.text import KeyTokenClassifier
from ...io.reading import read_table
from ...io.table import guess_columns, labels_of, texts_of
from ..explorer.page import explorer_parts
from .models import write_model
from .store import check_names, reason

HOLDOUT = 0.2
SEED = 0
Say = Callable[[dict[str, Any]], None]


def build_model(task: dict[str, Any], say: Say) -> None:
    """Read, score, fit, and put the model with its page into the folder `task["folder"]`."""
    say({"stage": "reading"})
    table = read_table(task["file"], task["format"], called=task["name"])
    text_column, label_column = guess_columns(table, task["text"], task["label"])
    assert label_column is not None
    texts, labels = texts_of(table, text_column), labels_of(table, label_column)
    check_labels("fit", labels, len(texts))
    check_names("labels", labels)
    options = {**task["options"], "random_state": SEED}
    model = KeyTokenClassifier().set_params(**options)
    model.check_options()
    with _telling("scoring", model.max_iter, say):
        held = hold_out(texts, labels, options, HOLDOUT, SEED)
    with _telling("training", model.max_iter, say):
        model.fit(texts, labels)
    say({"stage": "writing"})
    write_model(
        Path(task["folder"]),
        model,
        task["title"],
        _page_parts(model, texts, held, task["title"]),
        source=task["name"],
        columns={"text": text_column, "label": label_column},
        options=task["options"],
        texts=len(texts),
        score=None if held is None else held.score(),
    )


def _page_parts(model: KeyTokenClassifier, texts: list[str], held: HeldOut | None, title: str) -> dict[str, bytes]:
    """The score is that of the model that had not seen the texts; the texts are shown as the final model sees them."""
    if held is None:
        return explorer_parts(model.page_model(), title)[0]
    shown = [texts[i] for i in held.rows.tolist()]
    note = (
        f"Measured on {len(shown):,} texts that were held out, with a model fitted to the others. "
        "The model of this page was then fitted to all texts, these included."
    )
    P, labels = model.predict_proba(shown), held.labels.tolist()
    return explorer_parts(model.page_model(), title, shown, labels, P, scored=held.P, note=note)[0]


@contextmanager
def _telling(stage: str, of: int, say: Say) -> Iterator[None]:
    """Say the step and the objective of the fit that runs inside."""
    steps = itertools.count(1)

    def heard(objective: float) -> None:
        say({"stage": stage, "step": next(steps), "of": of, "objective": float(objective)})

    say({"stage": stage, "step": 0, "of": of})
    with listening(heard):
        yield


def _end_with_the_server() -> None:
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(1)


def main() -> None:
    task = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_the_server, daemon=True).start()

    def say(record: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(record) + "\n")
        sys.stdout.flush()

    try:
        build_model(task, say)
        say({"stage": "done"})
    except KeyTokensError as error:
        say({"stage": "failed", "message": " ".join(str(error).split())})
    except OSError as error:
        say({"stage": "failed", "message": f"the store cannot be written: {reason(error)}."})
    except MemoryError:
        say({"stage": "failed", "message": "not enough memory for this much data."})
    sys.stdout.flush()
    os._exit(0)  # the thread that waits for the server would hold the process


if __name__ == "__main__":
    main()
