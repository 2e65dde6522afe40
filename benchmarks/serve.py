"""A crowd that asks `keytokens serve` for explanations: `python -m benchmarks.serve`.

The server is a process of its own on the loopback address with a model of 50,000 tokens, trained on the reviews of the
extra `demo`. Each client keeps one connection and asks again as soon as it has its answer, so at any moment as many
requests are under way as there are clients: the latency is about their number divided by the requests per second.
"""

import argparse
import asyncio
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from keytokens import KeyTokenClassifier
from keytokens.io.corpora import imdb_reviews

RESULT = Path(__file__).parent / "results" / "serve.md"
TOKENS = 50_000
TEXTS = 400  # different reviews that are asked about
WARM_UP = 5.0  # seconds, not counted: the model is loaded and pools are filled
Requests = Sequence[dict[str, object]]
CODE = "import sys; from keytokens.app.cli import main; main(sys.argv[1:])"


@dataclass
class Tally:
    """What all clients saw."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def resident_mb(process: int) -> float:
    """Memory of a process, from the system's own books (Linux)."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, request: dict[str, object]) -> str:
    """One request on an open connection; an empty string, or what was wrong with the answer."""
    body = json.dumps(request).encode()
    head = f"POST {path} HTTP/1.1\nHost: 127.0.0.1\nContent-Type: application/json\nContent-Length: {len(body)}\n\n"
    writer.write(head.replace("\n", "\r\n").encode() + body)
    answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = re.search(r"content-length: (\d+)", answer)
    assert length is not None
    content = await reader.readexactly(int(length[1]))
    if not answer.startswith("http/1.1 200 "):
        return answer.split("\r\n")[0]
    return "" if b'"certificate"' in content else "no certificate"


async def client(port: int, path: str, requests: Requests, first: int, end: float, tally: Tally) -> None:
    number = first
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < end:
            begin = time.perf_counter()
            wrong = await ask(reader, writer, path, requests[number % len(requests)])
            tally.seconds.append(time.perf_counter() - begin)
            number += 1
            if wrong:
                tally.errors.append(wrong)
        writer.close()
        await writer.wait_closed()
    except (OSError, asyncio.IncompleteReadError) as error:
        tally.errors.append(repr(error))


async def crowd(port: int, path: str, requests: Requests, clients: int, seconds: float) -> Tally:
    tally = Tally()
    end = time.perf_counter() + seconds
    await asyncio.gather(*(client(port, path, requests, 7 * i, end, tally) for i in range(clients)))
    return tally


def measured(model: Path, texts: Sequence[str], clients: int, seconds: float, words: bool) -> dict[str, float]:
    """A fresh server, and what the crowd saw of it."""
    command = [sys.executable, "-c", CODE, "serve", str(model), "--port", "0", "--store"]
    with tempfile.TemporaryDirectory() as store:
        server = subprocess.Popen([*command, store], stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        try:
            said = re.search(r":(\d+)/models/(\w+)", server.stdout.readline())
            assert said is not None
            port, path = int(said[1]), f"/api/models/{said[2]}/explain"
            requests: Requests = [{"texts": [text], "words": words} for text in texts]
            asyncio.run(crowd(port, path, requests, clients, WARM_UP))
            memory = [resident_mb(server.pid)]
            begin, tallies = time.perf_counter(), []
            for _ in range(2):
                tallies.append(asyncio.run(crowd(port, path, requests, clients, seconds / 2)))
                memory.append(resident_mb(server.pid))
            took = time.perf_counter() - begin
        finally:
            server.terminate()
            server.wait(30)
            server.stdout.close()
    return figures(tallies, took, memory)


def figures(tallies: Sequence[Tally], took: float, memory: Sequence[float]) -> dict[str, float]:
    waits = [wait for tally in tallies for wait in tally.seconds]
    errors = [error for tally in tallies for error in tally.errors]
    for error in sorted(set(errors)):
        print(f"error: {error} ({errors.count(error)} times)", file=sys.stderr)
    cuts = statistics.quantiles(waits, n=100)
    return {
        "seconds, until the last answer": round(took, 1),
        "requests": len(waits),
        "errors": len(errors),
        "requests per second": round(len(waits) / took, 1),
        "median latency, ms": round(1000 * cuts[49]),
        "99th percentile, ms": round(1000 * cuts[98]),
        "longest, ms": round(1000 * max(waits)),
        "resident memory after the warm-up, MB": round(memory[0], 1),
        "resident memory at half-time, MB": round(memory[1], 1),
        "resident memory at the end, MB": round(memory[2], 1),
    }


def page(columns: dict[str, dict[str, float]], clients: int, tokens: int) -> str:
    names = list(next(iter(columns.values())))
    rows = [[name, *(f"{column[name]:,}" for column in columns.values())] for name in names]
    lines = ["| " + " | ".join(row) + " |" for row in [["", *columns], ["---"] * (1 + len(columns)), *rows]]
    machine = (
        f"{clients} clients, one IMDB review a request, a model of {tokens:,} tokens. Python "
        f"{platform.python_version()}, {os.cpu_count()} processors, which server and clients shared with other work "
        f"(load average {os.getloadavg()[0]:.1f}). The server computes in threads that share Python's one lock, and "
        "every client asks again at once: the latency is about their number divided by the requests per second."
    )
    return "\n".join(["# A crowd that asks for explanations", "", machine, "", *lines, ""])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--words", action="store_true", help="also measure explanations with their sets of words")
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args(arguments)
    texts, labels = imdb_reviews()
    with tempfile.TemporaryDirectory() as folder:
        clf = KeyTokenClassifier(max_tokens=TOKENS).fit(texts, labels)
        clf.save(Path(folder) / "model")
        kinds = {"explanations": False, **({"with sets of words": True} if options.words else {})}
        columns = {
            name: measured(Path(folder) / "model", texts[:TEXTS], options.clients, options.seconds, words)
            for name, words in kinds.items()
        }
    result = page(columns, options.clients, len(clf.vocabulary_))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(result, "utf-8")
    print(result)
    sys.exit(1 if any(column["errors"] for column in columns.values()) else 0)


if __name__ == "__main__":
    main()
