"""Trainings: a queue, one process each, and what they say, for whoever listens."""

from __future__ import annotations

import asyncio
import functools
import sqlite3
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from ...base.errors import InputError, KeyTokensError
from .guard import Limits
from .store import Store, new_id, reason
from .worker import run_task

ENDED = ("done", "failed", "cancelled", "interrupted")
HEARTBEAT = 10.0  # seconds of silence after which a listener hears that the server is still there


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
        self._stopping: dict[str, tuple[str, str]] = {}  # trainings that were told to end: how, and why
        self._unsaved: dict[str, dict[str, Any]] = {}  # ends that the store could not write
        self._closed = False

    def start(self, spec: dict[str, Any]) -> str:
        """Queue a training; its id."""
        if self._closed:
            raise Busy("runs: the server is about to end.")
        if len(self._waiting) >= self.limits.waiting:
            raise Busy(f"runs: at most {self.limits.waiting} trainings may wait. Wait for one to end.")
        self.store.upload(spec["upload"])  # refuses an id that there is not
        id = self.store.add_run(spec)
        self._waiting.append(id)
        self._say(id, {"stage": "queued"})
        self._pump()
        return id

    def cancel(self, id: str) -> None:
        """End a training, or take it out of the queue; one that has ended stays as it is."""
        self.store.run(id)
        self._stop(id, "cancelled", "by request")

    async def close(self) -> None:
        """End all trainings; whoever listens hears it, and nothing starts any more."""
        self._closed = True
        for id in [*self._waiting, *self._tasks]:
            self._stop(id, "interrupted", "the server ended")
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def latest(self, id: str) -> dict[str, Any]:
        """The run with what was heard of it last."""
        record = {**self.store.run(id), **self._unsaved.get(id, {})}
        return {**record, "progress": self._latest.get(id, {"stage": record["state"]})}

    async def events(self, id: str) -> AsyncIterator[dict[str, Any]]:
        """The run now and after each change, until it has ended; an empty record after a long silence."""
        while True:
            record = self.latest(id)
            if record["state"] in ENDED:
                yield record
                return
            event = self._changed.setdefault(id, asyncio.Event())  # before the record goes out: no change is missed
            yield record
            while True:
                try:
                    await asyncio.wait_for(event.wait(), HEARTBEAT)
                    break
                except TimeoutError:
                    yield {}

    def _stop(self, id: str, state: str, message: str) -> None:
        """Take a training out of the queue, or tell its task, once: a second word would not let it clean up."""
        if id in self._waiting:
            self._waiting.remove(id)
            self._end(id, state, f"{message}, before it began")
        elif id in self._tasks and id not in self._stopping:
            self._stopping[id] = state, message
            self._tasks[id].cancel()

    def _say(self, id: str, progress: dict[str, Any]) -> None:
        self._latest[id] = progress
        self._wake(id)

    def _wake(self, id: str) -> None:
        event = self._changed.pop(id, None)
        if event is not None:
            event.set()

    def _end(self, id: str, state: str, message: str = "", model: str | None = None) -> None:
        """A run ends for its listeners even where the store cannot write it down (a full disk)."""
        try:
            self.store.set_run(id, state, message, model)
        except sqlite3.Error:
            self._unsaved[id] = {"state": state, "message": message, "model": model}
        self._latest.pop(id, None)
        self._wake(id)

    def _pump(self) -> None:
        while self._waiting and len(self._tasks) < self.limits.trainings:
            id = self._waiting.popleft()
            task = asyncio.get_running_loop().create_task(self._train(id))
            self._tasks[id] = task
            task.add_done_callback(functools.partial(self._over, id))

    def _over(self, id: str, task: asyncio.Task[None]) -> None:
        del self._tasks[id]
        stopped = self._stopping.pop(id, None)
        if task.cancelled() and stopped:  # before its first step, so that nothing of it ran
            self._end(id, *stopped)
        self._pump()

    async def _train(self, id: str) -> None:
        model = new_id()
        try:
            self.store.set_run(id, "running")
            last = await run_task(self._task(id, model), lambda record: self._say(id, record))
            if last["stage"] == "done":
                self.store.add_model(model)
                self._end(id, "done", model=model)
            else:
                self._end(id, "failed", str(last["message"]))
        except asyncio.CancelledError:
            self._end(id, *self._stopping.get(id, ("interrupted", "the server ended")))
        except KeyTokensError as error:
            self._end(id, "failed", str(error))
        except (OSError, sqlite3.Error) as error:
            self._end(id, "failed", f"the store cannot be written: {reason(error)}.")
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
            "do": "train",
            "file": str(self.store.upload_file(spec["upload"])),
            "format": upload["format"],
            "name": upload["name"],
            "title": spec["title"] or upload["name"],
            "folder": str(self.store.building_folder(model)),
        }
