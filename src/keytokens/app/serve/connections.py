"""Connections: how many there may be, how long each may keep us waiting, and what the log says of it.

A client owes us something while it sends a request, while it is idle, and while it does not read its answer. Where
there are too many connections, the one that has owed for the longest is closed: a client that asks and reads owes for
milliseconds, and so is served beside any number of those that do not.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import OrderedDict
from contextlib import suppress
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from .guard import Limits

_SPARE = 128  # files: the store, models, processes
_LEAST = 16  # connections
_AT_A_TIME = 16  # connections that are accepted before the others are heard again
_QUEUE = 2_048  # connections that the system holds until then
_SILENCE = 60.0  # seconds for which a message is not said again
_KINDS = 1_000  # of messages that are remembered
_LATE = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def configured(app: ASGIApp, limits: Limits | None = None, **options: Any) -> uvicorn.Config:
    """A server's configuration within the limits."""
    limits = limits or Limits()
    shared = {"limits": limits, "most": room_for(limits.connections), "owing": OrderedDict()}
    kind = type("Connection", (_Connection,), shared)
    config = uvicorn.Config(app, http=kind, ws="none", backlog=_AT_A_TIME, **options)
    for name in ("asyncio", "uvicorn.error"):
        logging.getLogger(name).addFilter(_SELDOM)
    return config


def lengthen_queue(server: uvicorn.Server) -> None:
    """asyncio accepts as many at a time as may wait: few, so that all are heard in a flood. The system holds more."""
    for one in server.servers:
        for listening in one.sockets:
            with listening.dup() as real:
                real.listen(_QUEUE)


def room_for(connections: int) -> int:
    """So many connections, each with a file of its own open; fewer, if the system allows no more open files."""
    try:
        import resource
    except ImportError:  # Windows counts no files
        return connections
    wanted = 2 * connections + _SPARE
    soft, hard = (math.inf if n == resource.RLIM_INFINITY else n for n in resource.getrlimit(resource.RLIMIT_NOFILE))
    if soft < wanted:
        with suppress(OSError, ValueError):  # some systems have a limit below the one they name
            raised = int(min(wanted, hard))
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            soft = raised
    return max(min(_LEAST, connections), int((min(soft, wanted) - _SPARE) // 2))


class _Seldom(logging.Filter):
    """A message passes once a minute: what clients can cause again and again must not fill the disk."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, object], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        kind = (str(record.msg).partition("\n")[0], record.exc_info and record.exc_info[0])
        if record.created - self._said.get(kind, -math.inf) < _SILENCE:
            return False
        if len(self._said) >= _KINDS:
            self._said.clear()
        self._said[kind] = record.created
        return True


_SELDOM = _Seldom()


class _Connection(H11Protocol):
    """Headers have a time of their own, which no byte prolongs; so has the reading of an answer, if it goes on."""

    limits: Limits
    most: int
    owing: OrderedDict[_Connection, None]  # of all connections of a server; the oldest debt first

    _clock: asyncio.TimerHandle | None = None  # until the headers are here
    _reading: asyncio.TimerHandle | None = None  # until the answer is read
    _unread: float = math.inf  # bytes, when the client was looked at last

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        self._look()
        if len(self.connections) > self.most:
            next(iter(self.owing)).drop()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._forget()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and self.cycle.more_body:
            self.owing.pop(self, None)  # a piece of a body is no debt of old
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()
        self._await_reader()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look()
        self._await_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread = math.inf
        self._look()

    def drop(self) -> None:
        """Close at once, whatever was to be sent; the connection no longer counts."""
        self._forget()
        self.transport.abort()

    def _look(self) -> None:
        """Enter or strike out what the client owes."""
        if self not in self.connections:
            return
        asking = self.cycle is None or self.cycle.response_complete
        if asking or self.cycle.more_body or self.flow.write_paused:
            self.owing.setdefault(self)
        else:
            self.owing.pop(self, None)
        idle = self.timeout_keep_alive_task is not None or self.transport.is_closing()
        if asking and self._clock is None and not idle:
            self._clock = self.loop.call_later(self.limits.header_seconds, self._late)
        elif not asking and self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _late(self) -> None:
        if self.conn.trailing_data[0]:
            self.transport.write(_LATE)
        self.transport.close()

    def _await_reader(self) -> None:
        if self._reading is None and self.transport.get_write_buffer_size():
            self._unread = math.inf
            self._reading = self.loop.call_later(self.limits.idle_seconds, self._check_reader)
            unread = {one: one.transport.get_write_buffer_size() for one in self.owing}
            while sum(unread.values()) > self.limits.bodies:
                oldest = next(one for one, size in unread.items() if size)
                del unread[oldest]
                oldest.drop()

    def _check_reader(self) -> None:
        """While an answer waits to be read it must become shorter, or be read often enough to be written on."""
        self._reading, left = None, self.transport.get_write_buffer_size()
        if left > self._unread - self.limits.rate * self.limits.idle_seconds:
            self.drop()
        elif left:
            self._unread = left
            self._reading = self.loop.call_later(self.limits.idle_seconds, self._check_reader)

    def _forget(self) -> None:
        self.connections.discard(self)
        self.owing.pop(self, None)
        for timer in (self._clock, self._reading):
            if timer is not None:
                timer.cancel()
        self._unset_keepalive_if_required()
