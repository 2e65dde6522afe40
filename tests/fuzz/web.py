"""Readers of what comes over the wire, of the server's store, and of the command line's words."""

import asyncio
import contextlib
import io
import json
import shlex
import shutil
import socket
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import uvicorn

import keytokens as kt
from keytokens.app.cli.app import run
from keytokens.app.serve import Limits, Store, create_app
from keytokens.app.serve import app as routes
from keytokens.app.serve.connections import configured
from keytokens.app.serve.models import take_in
from keytokens.app.serve.worker import facts_of

from ..asgi import asked
from .models import TEXTS
from .mutate import WORDS, mutated, mutated_json
from .tables import CSV, JSONL
from .watch import Broken

LIMITS = Limits(body=60_000, upload=60_000, texts=50, text=5_000, trainings=0, waiting=250)  # none starts: no process


async def _look(file: Path, kind: str, name: str, seconds: float, most: int) -> dict[str, Any]:
    """What the process of its own does, without the process."""
    return json.loads(json.dumps(facts_of(str(file), kind, name, most)))


class _Server:
    """The application on a store with one model and one upload."""

    def __init__(self, folder: Path) -> None:
        routes.look = _look  # type: ignore[assignment]
        kt.KeyTokenClassifier(threads=1).fit(TEXTS[:4], ["pos", "pos", "neg", "neg"]).save(folder / "model")
        self.store = Store(folder / "store")
        self.model = take_in(self.store, folder / "model")
        self.upload = "0123456789abcdef"
        file = self.store.upload_path(self.upload, ".csv")
        file.write_bytes(CSV[0])
        self.store.add_upload(self.upload, "a.csv", file, facts_of(str(file), "csv", "a.csv"))
        self.folder, self.fresh = folder / "store", folder / "fresh"
        self.store.close()
        shutil.copytree(self.folder, self.fresh)
        self.open()

    def open(self) -> None:
        self.store = Store(self.folder)
        self.app = create_app(self.store, limits=LIMITS, token=None)

    def clear(self) -> None:
        """Trainings that wait would be refused, and uploads would fill the disk."""
        self.store.close()
        shutil.rmtree(self.folder)
        shutil.copytree(self.fresh, self.folder)
        self.open()

    def requests(self) -> list[tuple[str, str, bytes]]:
        model, upload = self.model, self.upload
        texts = json.dumps({"texts": ["a great film", "a dull plot"]}).encode()
        spec = {"upload": upload, "text": "text", "label": "label", "title": "t", "options": {"ngrams": 2, "sink": 0.5}}
        return [
            ("GET", "/", b""),
            ("GET", "/api/models", b""),
            ("GET", f"/api/models/{model}", b""),
            ("POST", f"/api/models/{model}/predict", texts),
            ("POST", f"/api/models/{model}/explain", texts),
            ("POST", f"/api/models/{model}/explain", b'{"texts": ["a great film"], "words": true}'),
            ("GET", f"/api/models/{model}/download", b""),
            ("GET", f"/models/{model}", b""),
            ("GET", f"/models/{model}/report.html", b""),
            ("GET", f"/models/{model}/model", b""),
            ("POST", "/api/uploads?name=a.csv", CSV[0]),
            ("POST", "/api/uploads?name=a.jsonl", JSONL[1]),
            ("GET", f"/api/uploads/{upload}", b""),
            ("POST", "/api/runs", json.dumps(spec).encode()),
            ("GET", "/api/runs", b""),
            ("GET", f"/api/runs/{model}", b""),
            ("POST", f"/api/runs/{model}/cancel", b""),
            ("DELETE", f"/api/uploads/{model}", b""),
            ("DELETE", f"/api/models/{upload}", b""),
            ("GET", "/openapi.json", b""),
        ]


def _check_answer(status: int, body: bytes) -> None:
    """Everything but 5xx; a refusal is one JSON object with one line. 503 and 507 are words of ours."""
    if status >= 500 and status not in (503, 507):
        raise Broken(f"status {status}: {body[:200]!r}")
    if status >= 400 and list(json.loads(body)) != ["error"]:
        raise Broken(f"a refusal that says nothing: {body[:200]!r}")


NAMES = ["host", "origin", "content-length", "content-type", "cookie", "authorization", "range", "x"]


class Web:
    """Requests to the application, in process."""

    def __init__(self, folder: Path) -> None:
        self.server = _Server(folder)
        self.loop = asyncio.new_event_loop()
        self.base = self.server.requests()
        self.heads = b"localhost application/json keep-alive http://localhost 100 bytes=0-1 gzip".split()
        self.count = 0

    def make(self, rng: Random, index: int) -> bytes:
        method, path, body = rng.choice(self.base)
        headers = [["host", "localhost"], ["content-type", "application/json"]]
        turn = rng.random()
        if turn < 0.5 and body.startswith(b"{") and path.startswith("/api/") and "uploads" not in path:
            body = mutated_json(rng, json.loads(body))
        elif turn < 0.7:
            body = mutated(rng, [body, *(other for _, _, other in self.base)])
        elif turn < 0.85:
            path = mutated(rng, [path.encode()]).decode("latin-1")
        if turn > 0.8:
            name = rng.choice(NAMES)
            headers.append([name, mutated(rng, self.heads).decode("latin-1")])
        if rng.random() < 0.05:
            method = rng.choice(["PUT", "HEAD", "OPTIONS", "PATCH", "DELETE", "GET", "POST", "X"])
        request = {"method": method, "path": path, "headers": headers, "body": body.decode("latin-1")}
        return json.dumps(request).encode()

    def read(self, content: bytes) -> None:
        request = json.loads(content)
        path, body = (request[name].encode("latin-1") for name in ("path", "body"))
        headers = [(name.encode(), value.encode("latin-1")) for name, value in request["headers"]]
        answer = asked(self.server.app, request["method"], path, headers, body)
        status, body = self.loop.run_until_complete(answer)
        if request["method"] != "HEAD":
            _check_answer(status, body)
        self.count += 1
        if self.count % 200 == 0:
            self.server.clear()


class Wire:
    """Bytes to the port of a real server: what is not HTTP is refused, and the server goes on."""

    def __init__(self, folder: Path) -> None:
        self.server = _Server(folder)
        config = configured(self.server.app, LIMITS, host="127.0.0.1", port=0, log_level="critical", lifespan="off")
        self.uvicorn = uvicorn.Server(config)
        threading.Thread(target=self.uvicorn.run, daemon=True).start()
        while not self.uvicorn.started:
            time.sleep(0.01)
        self.address = self.uvicorn.servers[0].sockets[0].getsockname()
        self.seeds = [
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
            + body
            for method, path, body in self.server.requests()
        ]
        chunked = b"POST /api/uploads?name=a.csv HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.seeds.append(chunked + b"1b\r\n" + CSV[0][:27] + b"\r\n0\r\n\r\n")
        self.seeds.append(b"GET / HTTP/1.0\r\n\r\n")

    def make(self, rng: Random, index: int) -> bytes:
        return mutated(rng, self.seeds)

    def read(self, content: bytes) -> None:
        with socket.create_connection(self.address[:2], timeout=8) as link:
            link.sendall(content)
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_WR)
            answer = b""
            with contextlib.suppress(ConnectionError):
                while piece := link.recv(1 << 16):
                    answer += piece
        if answer and not answer.startswith((b"HTTP/1.1 2", b"HTTP/1.1 3", b"HTTP/1.1 4")):
            raise Broken(f"an answer {answer[:120]!r}")


class Stored:
    """The store of a server that starts: its base, and what a model's folder says of itself."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "target"
        server = _Server(folder)
        server.store.add_run({"upload": server.upload, "title": ""})
        server.store.close()
        self.base = (folder / "store" / "store.sqlite").read_bytes()
        self.facts = json.loads((folder / "store" / "models" / server.model / "facts.json").read_text())
        self.model, self.upload = server.model, server.upload

    def make(self, rng: Random, index: int) -> bytes:
        if index % 2:
            return b"base" + mutated(rng, [self.base])
        return b"fact" + (
            mutated_json(rng, self.facts) if rng.random() < 0.7 else mutated(rng, [json.dumps(self.facts).encode()])
        )

    def read(self, content: bytes) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "models" / self.model).mkdir(parents=True)
        (self.folder / "uploads").mkdir()
        (self.folder / "uploads" / f"{self.upload}.csv").write_bytes(CSV[0])
        is_base = content[:4] == b"base"
        if is_base:
            (self.folder / "store.sqlite").write_bytes(content[4:])
        facts = json.dumps(self.facts).encode() if is_base else content[4:]
        (self.folder / "models" / self.model / "facts.json").write_bytes(facts)
        store = Store(self.folder)
        try:
            for record in store.models():
                routes.ModelRecord(**record)
            for record in store.uploads():
                routes.UploadRecord(**record)
                store.upload_file(record["id"])
            store.runs()
        finally:
            store.close()


COMMANDS = """\
fit HERE/a.csv -o HERE/out --ngrams 2 --counts log --holdout 0 --threads 1
fit HERE/a.csv -o HERE/out --size 20kB --seed 3 --sink 0.5 --holdout 0 --threads 1
predict HERE/model HERE/a.csv -o HERE/out.csv --text text --label label
predict HERE/model HERE/a.csv --json --threads 1
explain HERE/model 'a great film' --json
explain HERE/model 'a great film' --html HERE/out.html
report HERE/model HERE/a.csv -o HERE/out.html --title t --max-tokens 3"""


class Words:
    """The words of a command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "a.csv").write_bytes(CSV[0])
        kt.KeyTokenClassifier(threads=1).fit(TEXTS[:4], ["pos", "pos", "neg", "neg"]).save(folder / "model")
        self.base = [shlex.split(line.replace("HERE", str(folder))) for line in COMMANDS.splitlines()]

    def make(self, rng: Random, index: int) -> bytes:
        words = [word.encode() for word in rng.choice(self.base)]
        for _ in range(rng.choice([1, 1, 2])):
            at = rng.randrange(len(words))
            turn = rng.random()
            if turn < 0.5 and at and not words[at].startswith(str(self.folder).encode()):
                words[at] = mutated(rng, [words[at], *WORDS])[:300]
            elif turn < 0.7:
                del words[at]
            elif turn < 0.9:
                words.insert(
                    at, rng.choice([b"--json", b"--text", b"--label", b"-1", b"nan", b"inf", b"--", b"-h", b"--format"])
                )
            else:
                words[at] = rng.choice([b"", b"-1", b"nan", b"1e400", b"0", b"model/../model", b"99999999999999999999"])
            if not words:
                break
        return json.dumps([word.decode("utf-8", "surrogateescape") for word in words]).encode()

    def read(self, content: bytes) -> None:
        words = json.loads(content)
        if any(word in ("serve", "demo", "figure", "verify", "-", "--autotune") for word in words):
            return
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(words)
        said = err.getvalue()
        if code not in (0, 2):
            raise Broken(f"code {code}: {said[:200]}")
        if code == 2 and (said.count("\n") != 1 or not said.startswith("keytokens: ")):
            raise Broken(f"a refusal that is not one line: {said[:300]!r}")


READERS: dict[str, Any] = {"web": Web, "wire": Wire, "store": Stored, "command": Words}
