"""A training of the server: what it says on its way, and the folder that it fills."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...base.progress import listening
from ...estimators.text import KeyTokenClassifier
from ..explorer.page import explorer_parts
from ..jobs import FOLDS, FitJob, Watcher, fit_table
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
        steps, most = itertools.count(1), KeyTokenClassifier().max_iter * (FOLDS if name == "scoring" else 1)

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
    parts, _ = explorer_parts(done.model, task["title"], done.texts or (), done.labels or ())
    write_page(
        folder,
        done.model,
        task["title"],
        parts,
        source=task["name"],
        columns=done.columns,
        options=task["options"],
        texts=done.n_texts,
        score=done.score and done.score.headline(),
    )
