"""Trainings: a queue, one process each, and what they say, for whoever listens."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from ..errors import InputError
from .guard import Limits
from .store import Store, new_id

__all__ = ["Busy", "Runs"]

ENDED = ("done", "failed", "cancelled", "interrupted")
HEARTBEAT = 10.0  # seconds of silence after which a listener hears that the server is still there
_LINE = 1_000_000  # bytes of one line of a training


class Busy(InputError):
    """Too many trainings wait already."""


class Runs:
    """Starts trainings, a few at a time; all of it on one event loop."""

    def __init__(self, store: Store, limits: Limits) -> None:
        self.store = store
        self.limits = limits
        self._waiting: deque[str] = deque()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._latest: dict[str, dict[str, Any]] = {}
        self._changed: dict[str, asyncio.Event] = {}

    def start(self, spec: dict[str, Any]) -> str:
        """Queue a training; its id."""
        if len(self._waiting) >= self.limits.waiting:
            raise Busy(f"runs: at most {self.limits.waiting} trainings may wait. Cure: wait for one to end.")
        self.store.upload(spec["upload"])  # refuses an id that there is not
        id = self.store.add_run(spec)
        self._waiting.append(id)
        self._say(id, {"stage": "queued"})
        self._pump()
        return id

    def cancel(self, id: str) -> None:
        """End a training, or take it out of the queue; one that has ended stays as it is."""
        self.store.run(id)
        if id in self._waiting:
            self._waiting.remove(id)
            self._end(id, "cancelled", "cancelled before it began")
        elif id in self._tasks:
            self._tasks[id].cancel()

    async def close(self) -> None:
        for id in list(self._waiting):
            self.cancel(id)
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def latest(self, id: str) -> dict[str, Any]:
        """The run with what was heard of it last."""
        record = self.store.run(id)
        return {**record, "progress": self._latest.get(id)}

    async def events(self, id: str) -> AsyncIterator[dict[str, Any]]:
        """The run now and after each change, until it has ended; None-like heartbeats in between."""
        while True:
            event = self._changed.setdefault(id, asyncio.Event())
            record = self.latest(id)
            yield record
            if record["state"] in ENDED:
                return
            while True:
                try:
                    await asyncio.wait_for(event.wait(), HEARTBEAT)
                    break
                except TimeoutError:
                    yield {}

    def _say(self, id: str, progress: dict[str, Any]) -> None:
        self._latest[id] = progress
        event = self._changed.pop(id, None)
        if event is not None:
            event.set()

    def _end(self, id: str, state: str, message: str = "", model: str | None = None) -> None:
        self.store.set_run(id, state, message, model)
        self._say(id, {"stage": state})

    def _pump(self) -> None:
        while self._waiting and len(self._tasks) < self.limits.trainings:
            id = self._waiting.popleft()
            task = asyncio.get_running_loop().create_task(self._train(id))
            self._tasks[id] = task
            task.add_done_callback(lambda _, id=id: self._over(id))

    def _over(self, id: str) -> None:
        del self._tasks[id]
        self._pump()

    async def _train(self, id: str) -> None:
        model = new_id()
        try:
            self.store.set_run(id, "running")
            state, message = await self._process(id, self._task(id, model))
            if state == "done":
                self.store.add_model(model)
                self._end(id, "done", model=model)
            else:
                self._end(id, "failed", message)
        except asyncio.CancelledError:
            self._end(id, "cancelled", "cancelled")
        except Exception as error:
            self._end(id, "failed", f"the training ended unexpectedly ({type(error).__name__}).")
            raise
        finally:
            self.store.discard_building(model)

    def _task(self, id: str, model: str) -> dict[str, Any]:
        spec = self.store.run(id)["spec"]
        upload = self.store.upload(spec["upload"])
        return {
            **spec,
            "file": str(self.store.upload_file(spec["upload"])),
            "format": upload["format"],
            "name": upload["name"],
            "title": spec["title"] or upload["name"],
            "folder": str(self.store.building_folder(model)),
        }

    async def _process(self, id: str, task: dict[str, Any]) -> tuple[str, str]:
        """Run the training's process; how it ended, and why."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "keytokens.serve.training"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=_LINE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        last: dict[str, Any] = {}
        try:
            process.stdin.write(json.dumps(task).encode() + b"\n")
            await process.stdin.drain()
            async for line in process.stdout:
                last = json.loads(line)
                if last["stage"] not in ("done", "failed"):
                    self._say(id, last)
            await process.wait()
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if last.get("stage") in ("done", "failed"):
            return str(last["stage"]), str(last.get("message", ""))
        return "failed", f"the training's process ended with code {process.returncode}."
