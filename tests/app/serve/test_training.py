"""What a training says, word by word."""

import asyncio
import itertools
import json
from collections.abc import Callable

import pytest

from keytokens.app.serve import Limits
from keytokens.app.serve.runs import Runs
from keytokens.app.serve.training import build_model
from keytokens.app.serve.worker import facts_of
from keytokens.base.errors import KeyTokensError

from .conftest import SPEC, in_a_loop, table


def said_of(folder, content: bytes, name: str, **options: object) -> list[dict[str, object]]:
    """What a training says, in this process."""
    (folder / name).write_bytes(content)
    task = {"file": str(folder / name), "format": name.partition(".")[2], "name": name, "title": "told"}
    said: list[dict[str, object]] = []
    build_model(
        {**task, "text": None, "label": None, "options": {}, "folder": str(folder / "model"), **options}, said.append
    )
    return said


def test_a_training_tells_the_whole_story(tmp_path):
    said = said_of(tmp_path, table(), "r.csv")
    stages = [stage for stage, _ in itertools.groupby(record["stage"] for record in said)]
    assert stages == ["reading", "scoring", "training", "writing"]
    for stage in ("scoring", "training"):
        steps = [record for record in said if record["stage"] == stage]
        assert [record["step"] for record in steps] == list(range(len(steps)))
        assert len(steps) > 1
        assert all(record["objective"] > 0 for record in steps[1:])


def test_trainings_that_are_refused(tmp_path):
    """JSON lines may hold half characters, which no answer could: cells are shown without, labels are refused."""
    with pytest.raises(KeyTokensError, match="no such column"):
        said_of(tmp_path, table(), "r.csv", text="no such column")
    lines = "".join(json.dumps({"text": f"a b {i} \ud800", "label": ["x", "\udfff"][i % 2]}) + "\n" for i in range(20))
    with pytest.raises(KeyTokensError, match="labels must be whole characters"):
        said_of(tmp_path, lines.encode(), "a.jsonl")
    assert facts_of(str(tmp_path / "a.jsonl"), "jsonl", "a.jsonl")["preview"][0] == ["a b 0 ?", "x"]


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
