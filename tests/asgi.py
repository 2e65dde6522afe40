"""One request to an application, without a port."""

import asyncio
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

HOST = (b"host", b"localhost")


async def asked(
    app: Any, method: str, path: bytes, headers: Iterable[tuple[bytes, bytes]] = (HOST,), body: bytes = b""
) -> tuple[int, bytes]:
    """The status, and what came of the answer: its reader is gone when it has begun."""
    raw, _, query = path.partition(b"?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(raw.decode("latin-1")),
        "raw_path": raw,
        "query_string": query,
        "root_path": "",
        "headers": list(headers),
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    given = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Any] = []

    async def receive() -> Any:
        if given:
            return given.pop()
        while not sent:
            await asyncio.sleep(0.001)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])
