"""Half-open connections beside other clients of `keytokens serve`: `python -m benchmarks.slow_clients`.

The server is a process of its own on the loopback address with a small model. Slow clients connect, send half of their
headers, and connect again as soon as they are closed. Other clients ask for predictions all the while, half of them on
a new connection each time. What they waited, and how much the server wrote to its log, is printed.
"""

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from keytokens import KeyTokenClassifier

from .serve import CODE, Tally

HALF = b"POST /api/models HTTP/1.1\r\nHost: localhost\r\nX-Half: "
PATIENCE = 10.0  # seconds after which a client gives up, which counts as an error
PAUSE = 0.05  # seconds between two requests of one client
BODY = b'{"texts": ["a great film with a dull plot"]}'
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def half_open(port: int, end: float) -> None:
    while time.perf_counter() < end:
        with contextlib.suppress(OSError, TimeoutError):
            reader, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), PATIENCE)
            writer.write(HALF)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(reader.read(), max(0.0, end - time.perf_counter()))
            writer.transport.abort()
        await asyncio.sleep(PAUSE)


async def answer(streams: Streams, path: str) -> str:
    """The first line of the answer to one request."""
    reader, writer = streams
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(BODY)}"
    writer.write(f"{head}\r\n\r\n".encode() + BODY)
    said = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = re.search(r"content-length: (\d+)", said)
    assert length is not None
    await reader.readexactly(int(length[1]))
    return said.split("\r\n")[0]


async def ask(port: int, path: str, kept: Streams | None) -> tuple[str, Streams]:
    """On the connection that was kept; if it was closed while it was idle, on a new one, as browsers do."""
    if kept is not None:
        with contextlib.suppress(OSError, EOFError):
            return await answer(kept, path), kept
    streams = await asyncio.open_connection("127.0.0.1", port)
    return await answer(streams, path), streams


async def client(port: int, path: str, end: float, keep: bool, tally: Tally) -> None:
    kept: Streams | None = None
    while time.perf_counter() < end:
        begin = time.perf_counter()
        try:
            status, kept = await asyncio.wait_for(ask(port, path, kept), PATIENCE)
            wrong = "" if status.startswith("http/1.1 200 ") else status
        except (OSError, EOFError, TimeoutError) as error:
            wrong = repr(error)
        tally.seconds.append(time.perf_counter() - begin)
        if wrong:
            tally.errors.append(wrong)
        if kept is not None and (wrong or not keep):
            kept[1].transport.abort()
            kept = None
        await asyncio.sleep(PAUSE)


async def slow_crowd(port: int, slow: int, end: float) -> None:
    await asyncio.gather(*(half_open(port, end) for _ in range(slow)))


async def other_crowd(port: int, path: str, others: int, end: float) -> Tally:
    tally = Tally()
    await asyncio.gather(*(client(port, path, end, i % 2 == 0, tally) for i in range(others)))
    return tally


def crowds(port: int, path: str, slow: int, others: int, seconds: float) -> Tally:
    """The slow clients are a process of their own: what they do is no waiting of the others."""
    end = time.perf_counter() + seconds
    process = multiprocessing.Process(target=lambda: asyncio.run(slow_crowd(port, slow, end)))
    process.start()
    try:
        return asyncio.run(other_crowd(port, path, others, end))
    finally:
        process.join()


def measured(slow: int, others: int, seconds: float, files: tuple[int, int]) -> dict[str, object]:
    """A fresh server with so many file descriptors (soft and hard limit), and what the other clients saw of it."""
    command = [sys.executable, "-c", CODE, "serve"]

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, files)

    with tempfile.TemporaryDirectory() as folder:
        model, log = Path(folder) / "model", Path(folder) / "log"
        KeyTokenClassifier().fit(["a great film", "a dull plot"] * 20, ["good", "bad"] * 20).save(model)
        with log.open("wb") as file:
            server = subprocess.Popen(
                [*command, str(model), "--port", "0", "--store", f"{folder}/store"],
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                preexec_fn=limited,
            )
            assert server.stdout is not None
            try:
                said = re.search(r":(\d+)/models/(\w+)", server.stdout.readline())
                assert said is not None
                path = f"/api/models/{said[2]}/predict"
                tally = crowds(int(said[1]), path, slow, others, seconds)
            finally:
                server.terminate()
                server.wait(30)
                server.stdout.close()
        cuts = statistics.quantiles(tally.seconds, n=100)
        return {
            "half-open connections": slow,
            "seconds": seconds,
            "other clients": others,
            "their requests": len(tally.seconds),
            "errors": len(tally.errors),
            "kinds of errors": sorted(set(tally.errors)),
            "median latency, ms": round(1000 * cuts[49]),
            "99th percentile, ms": round(1000 * cuts[98]),
            "longest, ms": round(1000 * max(tally.seconds)),
            "bytes of the log": log.stat().st_size,
        }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slow", type=int, default=2_000)
    parser.add_argument("--others", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--files", type=int, default=1_024, help="file descriptors that the server begins with")
    parser.add_argument("--most-files", type=int, help="that it may ask for; as many as this process, if not given")
    options = parser.parse_args(arguments)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, options.slow + options.others + 100)), hard))
    files = options.files, options.most_files or hard
    print(json.dumps(measured(options.slow, options.others, options.seconds, files), indent=1))


if __name__ == "__main__":
    main()
