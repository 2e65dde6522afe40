"""Whose texts are worked on next: a few at a time in threads, and nothing more for a client that left.

A request is cut into portions. Its turn comes as though it had to be answered at once, and a second later for each so
many characters: a short request passes a crowd of long ones, and a long one still has its turn.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

T = TypeVar("T")
_PORTION = 10_000  # characters that are worked on in one go, or one text
_RATE = 20_000.0  # characters that put a request off by a second


class Turns:
    """Threads, and who waits for them; all of it on one event loop."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, "keytokens")
        self._free = threads
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._number = itertools.count()

    async def each(self, texts: Sequence[str], job: Callable[[Sequence[str]], T]) -> list[T]:
        """What the job makes of each portion of the texts."""
        due = asyncio.get_running_loop().time() + sum(map(len, texts)) / _RATE
        return [await self._turn(due, job, portion) for portion in portions(texts)]

    async def _turn(self, due: float, job: Callable[[Sequence[str]], T], portion: Sequence[str]) -> T:
        loop = asyncio.get_running_loop()
        await self._enter(due)
        work = loop.run_in_executor(self._pool, job, portion)
        work.add_done_callback(self._leave)  # a thread goes on with its portion, whoever has left
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            work.add_done_callback(_close_result)
            raise

    async def _enter(self, due: float) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (due, next(self._number), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was given the thread in the moment it left
                self._leave()
            raise

    def _leave(self, work: asyncio.Future[Any] | None = None) -> None:
        if work is not None and not work.cancelled():
            work.exception()  # whoever asked may have left
        while self._waiting:
            turn = heapq.heappop(self._waiting)[2]
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def _close_result(work: asyncio.Future[Any]) -> None:
    """A file that nobody waits for any more."""
    if not work.cancelled() and work.exception() is None and hasattr(work.result(), "close"):
        work.result().close()


class Places:
    """So many at once, and one line for those who come when all are taken."""

    def __init__(self, most: int, what: str) -> None:
        self._free = most
        self._refusal = f"at most {most} {what} at once. Try again in a moment."

    def check(self) -> None:
        if self._free <= 0:
            raise HTTPException(503, self._refusal)

    def __enter__(self) -> None:
        self.check()
        self._free -= 1

    def __exit__(self, *_: object) -> None:
        self._free += 1


def portions(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """The texts in order, as many at a time as have few characters together; no texts are one portion."""
    begin, size = 0, 0
    for i, text in enumerate(texts):
        if size and size + len(text) > _PORTION:
            yield texts[begin:i]
            begin, size = i, 0
        size += len(text)
    yield texts[begin:]


async def while_there(request: Request, doing: Awaitable[T]) -> T:
    """What is done for a client, until it leaves."""

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    work, gone = asyncio.ensure_future(doing), asyncio.ensure_future(left())
    try:
        await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise ClientDisconnect
        return await work
    finally:
        for task in (work, gone):
            task.cancel()
        await asyncio.gather(work, gone, return_exceptions=True)
