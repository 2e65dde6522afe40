"""What a training says, word by word."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

from keytokens.app.serve import Limits
from keytokens.app.serve.runs import Runs
from keytokens.app.serve.training import build_model

from . import test_faults
from .conftest import table
from .test_faults import SPEC, in_a_loop

store = test_faults.store


def test_a_training_tells_the_whole_story(tmp_path):
    file = tmp_path / "r.csv"
    file.write_bytes(table())
    task = {"file": str(file), "format": "csv", "name": "r.csv", "title": "told", "text": None, "label": None}
    said = []
    build_model({**task, "options": {}, "folder": str(tmp_path / "model")}, said.append)
    stages = [stage for stage, _ in itertools.groupby(record["stage"] for record in said)]
    assert stages == ["reading", "scoring", "training", "writing"]
    for stage in ("scoring", "training"):
        steps = [record for record in said if record["stage"] == stage]
        assert [record["step"] for record in steps] == list(range(len(steps)))
        assert len(steps) > 1
        assert all(record["objective"] > 0 for record in steps[1:])


def test_who_listens_in_time_hears_every_word(store, monkeypatch):
    words = [{"stage": "training", "step": step} for step in range(20)]

    async def story() -> list[dict[str, object]]:
        runs = Runs(store, Limits())
        heard: list[dict[str, object]] = []
        taken = asyncio.Event()

        async def tells(task: dict[str, object], hear: Callable[[dict[str, object]], None]) -> dict[str, object]:
            for word in words:
                taken.clear()
                hear(word)
                await taken.wait()
            return {"stage": "failed", "message": "it was only told"}

        monkeypatch.setattr("keytokens.app.serve.runs.run_task", tells)
        async for record in runs.events(runs.start(SPEC)):
            heard.append(record["progress"])
            taken.set()
        return heard

    heard = in_a_loop(story())
    assert [word for word in heard if word["stage"] == "training"] == words
    assert heard[-1] == {"stage": "failed"}
