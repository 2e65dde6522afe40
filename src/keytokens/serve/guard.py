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
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["COOKIE", "Guard", "Limits", "error_body", "is_loopback"]

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
    upload: int = 1_000_000_000
    body_seconds: float = 30.0  # within which a JSON request must have arrived
    idle_seconds: float = 30.0  # between two pieces of an upload
    texts: int = 1_000  # in one request
    text: int = 200_000  # characters of one text
    requests: int = 512  # at once; more are told to come back
    trainings: int = 1  # at once; more wait
    waiting: int = 16  # trainings that may wait
    answer_seconds: float = 60.0  # to predict or explain
    preview_seconds: float = 300.0  # to read an upload
    previews: int = 2  # at once; more wait


def is_loopback(host: str) -> bool:
    return host in ("localhost", "::1", "[::1]") or host.startswith("127.")


def error_body(message: str) -> dict[str, str]:
    return {"error": " ".join(message.split())}


class _Refused(Exception):
    """Refused before the application sees the request; inside of it HTTPException says the same."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Guard:
    """ASGI middleware; whatever it refuses is one JSON object with one clear line."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], token: str | None, limits: Limits) -> None:
        self.app = app
        self.hosts = frozenset(hosts)  # names without port; empty: any
        self.token = token
        self.limits = limits
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        state = {"started": False}
        send = _dressed(send, state)
        if self._open >= self.limits.requests:
            await _answer(send, 503, "too many requests at once. Cure: try again in a moment.")
            return
        self._open += 1
        try:
            headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
            cookie = self._check(scope, headers)
            if cookie:
                send = _with_header(send, b"set-cookie", cookie.encode("latin-1"))
            await self.app(scope, self._limited(scope, headers, receive), send)
        except _Refused as refused:
            if not state["started"]:
                await _answer(send, refused.status, refused.message)
        finally:
            self._open -= 1

    def _check(self, scope: Scope, headers: dict[str, str]) -> str:
        """Raise if the request is none of ours; return a cookie to set, if the token came in the address."""
        if not scope.get("query_string", b"").isascii():
            raise _Refused(400, "an address must be plain ASCII, other letters percent-encoded.")
        host = _name_of(headers.get("host", ""))
        if self.hosts and host not in self.hosts:
            raise _Refused(421, f"the host must be one of {', '.join(sorted(self.hosts))}; saw {host[:80]!r}.")
        origin = headers.get("origin")
        if origin is not None and _place_of(origin) != headers.get("host"):
            raise _Refused(403, f"requests of other sites are refused; saw the origin {origin[:80]!r}.")
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and not _is_visit(scope, headers):
            raise _Refused(403, "requests of other sites are refused.")
        return self._check_token(scope, headers) if self.token else ""

    def _check_token(self, scope: Scope, headers: dict[str, str]) -> str:
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
        for candidate in (_bearer(headers), _cookie(headers), given):
            if candidate and hmac.compare_digest(candidate.encode(), str(self.token).encode()):
                return f"{COOKIE}={self.token}; HttpOnly; SameSite=Strict; Path=/" if candidate == given else ""
        raise _Refused(
            401,
            "a token is needed. Cure: open the address that the server printed, or send the header "
            "Authorization: Bearer TOKEN.",
        )

    def _limited(self, scope: Scope, headers: dict[str, str], receive: Receive) -> Receive:
        """`receive` that counts bytes and seconds; uploads are long, everything else is short."""
        upload = scope["path"] == "/api/uploads"
        most = self.limits.upload if upload else self.limits.body
        length = headers.get("content-length", "")
        if length.isdecimal() and (len(length) > 15 or int(length) > most):
            raise _Refused(413, f"a request may have {most:,} bytes; saw {length[:40]}.")
        loop = asyncio.get_running_loop()
        ends = loop.time() + self.limits.body_seconds
        seen, whole = 0, False

        async def limited() -> Message:
            nonlocal seen, whole
            if whole:  # the body has arrived: what comes now is the end of the connection
                return await receive()
            wait = self.limits.idle_seconds if upload else max(0.0, ends - loop.time())
            try:
                message = await asyncio.wait_for(receive(), wait)
            except TimeoutError:
                raise HTTPException(408, "the request did not arrive in time.") from None
            seen += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if seen > most:
                raise HTTPException(413, f"a request may have {most:,} bytes; saw more.")
            return message

        return limited


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


def _dressed(send: Send, state: dict[str, bool]) -> Send:
    """`send` that adds the headers every answer has."""

    async def dressed(message: Message) -> None:
        if message["type"] == "http.response.start":
            state["started"] = True
            names = {key.lower() for key, _ in message.get("headers", [])}
            extra = [pair for pair in HEADERS if pair[0] not in names]
            message = {**message, "headers": [*message.get("headers", []), *extra]}
        await send(message)

    return dressed


def _with_header(send: Send, name: bytes, value: bytes) -> Send:
    async def more(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), (name, value)]}
        await send(message)

    return more


async def _answer(send: Send, status: int, message: str) -> None:
    body: Any = json.dumps(error_body(message)).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
