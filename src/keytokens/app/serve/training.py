"""A training of the server: what it says on its way, and the folder that it fills."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...base.progress import listening
from ...estimators.text import KeyTokenClassifier
from ..explorer.page import explorer_parts
from ..jobs import Fit, FitJob, Watcher, fit_table
from .models import write_page
from .store import check_names

SEED = 0
Say = Callable[[dict[str, Any]], None]


class _Stages(Watcher):
    """Says each stage, and each step of a stage that has some."""

    def __init__(self, say: Say) -> None:
        self._say = say

    def classes(self, counts: Counter[Any]) -> None:
        check_names("labels", counts)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        if name in ("reading", "writing"):
            self._say({"stage": name})
            yield
            return
        steps, most = itertools.count(1), KeyTokenClassifier().max_iter

        def heard(objective: float) -> None:
            self._say({"stage": name, "step": next(steps), "of": most, "objective": float(objective)})

        self._say({"stage": name, "step": 0, "of": most})
        with listening(heard):
            yield


def build_model(task: dict[str, Any], say: Say) -> None:
    """Read, score, fit, and put the model with its page into the folder `task["folder"]`."""
    folder = Path(task["folder"])
    done = fit_table(
        FitJob(
            data=task["file"],
            output=folder / "model",
            options={**task["options"], "random_state": SEED},
            format=task["format"],
            called=task["name"],
            text=task["text"],
            label=task["label"],
            seed=SEED,
        ),
        _Stages(say),
    )
    write_page(
        folder,
        done.model,
        task["title"],
        _page_parts(done, task["title"]),
        source=task["name"],
        columns=done.columns,
        options=task["options"],
        texts=done.n_texts,
        score=done.score and asdict(done.score),
    )


def _page_parts(done: Fit, title: str) -> dict[str, bytes]:
    """The score is that of the model that had not seen the texts; the texts are shown as the final model sees them."""
    model, held = done.model, done.held
    if held is None:
        return explorer_parts(model, title)[0]
    assert done.texts is not None
    shown = [done.texts[i] for i in held.rows.tolist()]
    note = (
        f"Measured on {len(shown):,} texts that were held out, with a model fitted to the others. "
        "The model of this page was then fitted to all texts, these included."
    )
    return explorer_parts(model, title, shown, held.labels, scored=held.P, note=note)[0]
