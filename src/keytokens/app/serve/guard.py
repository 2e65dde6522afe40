"""Who may ask, how much and for how long: one layer around the application.

A page of another site must not reach a server on this machine: a browser tells the host it asked for (so a name that
was made to point here is refused) and the origin of the page that asks. A token is needed as soon as the server can
be reached from other machines.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "keytokens-token"
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes, times in seconds."""

    body: int = 4_000_000  # of a JSON request
    bodies: int = 256_000_000  # of all JSON requests at once, and of all answers that wait to be read
    upload: int = 1_000_000_000  # as sent, and unpacked
    uploads: int = 16  # at once; more are told to come back
    connections: int = 4_000  # or fewer, if the system allows few open files
    header_seconds: float = 10.0  # within which the headers of a request must have arrived
    body_seconds: float = 30.0  # within which a JSON request must have arrived
    idle_seconds: float = 30.0  # between two pieces of an upload, or of an answer that is read
    rate: int = 10_000  # bytes a second, below which an upload or the reading of a long answer is ended
    texts: int = 1_000  # in one request
    text: int = 200_000  # characters of one text
    explain: int = 200_000  # characters of all texts of a request to explain
    explain_words: int = 50_000  # ... with the sets of words
    requests: int = 512  # at once, from when they have arrived; more are told to come back
    streams: int = 64  # pages that follow a training
    trainings: int = 1  # at once; more wait
    waiting: int = 16  # trainings that may wait
    answer_seconds: float = 60.0  # to predict or explain
    preview_seconds: float = 300.0  # to read an upload
    previews: int = 2  # at once, and as many downloads that are packed; more wait


def is_loopback(host: str) -> bool:
    return host in ("localhost", "::1", "[::1]") or host.startswith("127.")


def error_body(message: str) -> dict[str, str]:
    return {"error": " ".join(message.split())}


class Guard:
    """ASGI middleware; whatever it refuses is one JSON object with one clear line."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], token: str | None, limits: Limits) -> None:
        self.app = app
        self.hosts = frozenset(hosts)  # names without port; empty: any
        self.token = token
        self.limits = limits
        self._working = 0  # requests that have arrived
        self._held = 0  # bytes of the JSON requests under way

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
        body = _Body(self, scope, headers, receive)
        answer = _Answer(send, body, head_only=scope["method"] == "HEAD")
        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        try:
            answer.cookie = self._check(scope, headers)
            body.begin()
            await self.app(scope, body.receive, answer.send)
        except HTTPException as refused:
            if not answer.started:
                await answer.refuse(refused.status_code, str(refused.detail))
        finally:
            body.end()

    def _check(self, scope: Scope, headers: dict[str, str]) -> str:
        """Raise if the request is none of ours; return a cookie to set, if the token came in the address."""
        if not scope.get("query_string", b"").isascii():
            raise HTTPException(400, "an address must be plain ASCII, other letters percent-encoded.")
        host = _name_of(headers.get("host", ""))
        if self.hosts and host not in self.hosts:
            raise HTTPException(421, f"the host must be one of {', '.join(sorted(self.hosts))}; saw {host[:80]!r}.")
        origin = headers.get("origin")
        if origin is not None and _place_of(origin) != headers.get("host"):
            raise HTTPException(403, f"requests of other sites are refused; saw the origin {origin[:80]!r}.")
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and not _is_visit(scope, headers):
            raise HTTPException(403, "requests of other sites are refused.")
        return self._check_token(scope, headers) if self.token else ""

    def _check_token(self, scope: Scope, headers: dict[str, str]) -> str:
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
        for candidate in (_bearer(headers), _cookie(headers), given):
            if candidate and hmac.compare_digest(candidate.encode(), str(self.token).encode()):
                return f"{COOKIE}={self.token}; HttpOnly; SameSite=Strict; Path=/" if candidate == given else ""
        raise HTTPException(
            401,
            "a token is needed. Open the address that the server printed, or send the header "
            "Authorization: Bearer TOKEN.",
        )

    def take(self, places: int, held: int) -> None:
        """Room for a request: a place among those at work, bytes of those that arrive; less than none gives it back."""
        self._working += places
        self._held += held
        if (places > 0 and self._working > self.limits.requests) or (held > 0 and self._held > self.limits.bodies):
            raise HTTPException(503, "too many requests at once. Try again in a moment.")


class _Body:
    """The body of a request as it arrives, counted and timed; uploads are long, everything else is short.

    A request has its place among those at work from when it is here until its answer begins: clients who are slow to
    send or to read take no place of others.
    """

    def __init__(self, guard: Guard, scope: Scope, headers: dict[str, str], receive: Receive) -> None:
        self.limits = guard.limits
        self.whole = headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers
        self._upload = scope["path"] == "/api/uploads"
        self._read = scope["method"] == "POST"
        self._most = self.limits.upload if self._upload else self.limits.body
        self._length = headers.get("content-length", "")
        self._take = guard.take
        self._taken = [0, 0]
        self._receive = receive
        self._late = False
        self._seen = 0
        self._begin = asyncio.get_running_loop().time()

    def begin(self) -> None:
        """Refuse what says of itself that it is too long."""
        if self._length.isdecimal() and (len(self._length) > 15 or int(self._length) > self._most):
            raise HTTPException(413, f"a request may have {self._most:,} bytes; saw {self._length[:40]}.")
        if self.whole or not self._read:
            self._take_room(1, 0)

    def end(self) -> None:
        places, held = self._taken
        self._taken = [0, 0]
        self._take(-places, -held)

    async def receive(self) -> Message:
        if self.whole:  # what comes now is the end of the connection
            return await self._receive()
        message = await self._piece()
        size = len(message.get("body", b""))
        self._seen += size
        if self._seen > self._most:
            raise HTTPException(413, f"a request may have {self._most:,} bytes; saw more.")
        if not self._upload:
            self._take_room(int(self.whole and self._read), size)
        return message

    async def drain(self) -> None:
        """Read what still comes, for a while."""
        read = 0
        with suppress(TimeoutError, HTTPException):
            async with asyncio.timeout(self.limits.idle_seconds):
                while not self.whole and not self._late and read <= self.limits.upload:
                    read += len((await self._piece()).get("body", b""))

    def _take_room(self, places: int, held: int) -> None:
        self._taken = [self._taken[0] + places, self._taken[1] + held]
        self._take(places, held)

    async def _piece(self) -> Message:
        loop = asyncio.get_running_loop()
        wait = self._begin + self.limits.body_seconds + (self._seen / self.limits.rate) * self._upload - loop.time()
        try:
            most = self.limits.idle_seconds if self._upload else wait
            message = await asyncio.wait_for(self._receive(), max(0.0, min(wait, most)))
        except TimeoutError:
            self._late = True
            raise HTTPException(408, "the request did not arrive in time.") from None
        self.whole = not message.get("more_body", False)
        return message


class _Answer:
    """The answer to a request: with the headers every answer has, and ended when the request has been read.

    A client that still sends to a closed connection would not see its answer, so the last piece waits for the request.
    """

    def __init__(self, send: Send, body: _Body, head_only: bool) -> None:
        self.cookie = ""
        self.started = False
        self._send = send
        self._body = body
        self._head_only = head_only  # for HEAD the answer of GET ends where its body would begin

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            await self._pass_on({**message, "headers": self._headers(message.get("headers", []))})
            if self._head_only:
                await self._pass_on({"type": "http.response.body"})
        elif not self._head_only:
            await self._pass_on(message)

    async def refuse(self, status: int, message: str) -> None:
        """Answer with one JSON object, and end the connection."""
        content = json.dumps(error_body(message)).encode()
        size = str(len(content)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", size), (b"connection", b"close")]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": content})

    def _headers(self, given: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        own = list(given)
        names = {key.lower() for key, _ in own}
        ends = () if self._body.whole else ((b"connection", b"close"),)
        cookie = ((b"set-cookie", self.cookie.encode("latin-1")),) if self.cookie else ()
        return [*own, *(pair for pair in (*HEADERS, *ends) if pair[0] not in names), *cookie]

    async def _pass_on(self, message: Message) -> None:
        self._body.end()
        is_last = message["type"] == "http.response.body" and not message.get("more_body", False)
        if is_last and not self._body.whole:
            await self._send({**message, "more_body": True})
            await self._body.drain()
            message = {"type": "http.response.body"}
        await self._send(message)


def _name_of(host: str) -> str:
    """The host without its port."""
    return host if host.endswith("]") else host.rpartition(":")[0] or host


def _place_of(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _is_visit(scope: Scope, headers: dict[str, str]) -> bool:
    """Following a link from elsewhere to a page of ours is no request of another site."""
    return scope["method"] in ("GET", "HEAD") and headers.get("sec-fetch-mode") == "navigate"


def _bearer(headers: dict[str, str]) -> str:
    kind, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if kind.lower() == "bearer" else ""


def _cookie(headers: dict[str, str]) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""
