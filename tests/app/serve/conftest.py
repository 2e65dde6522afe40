"""A real server on the loopback address, in a thread of the test, and a small client."""

import asyncio
import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest

from keytokens import KeyTokenClassifier

from ...conftest import skip_or_fail
from ...corpus import reviews

try:
    import fastapi  # noqa: F401
    import uvicorn

    from keytokens.app.serve import Limits, Store, create_app
    from keytokens.app.serve.connections import configured
    from keytokens.app.serve.worker import facts_of
except ImportError:
    skip_or_fail("the extra `serve` is not installed")


def table(n: int = 60) -> bytes:
    """So many rows of reviews, of which some return."""
    rows = islice(cycle(zip(*reviews(min(n, 200)), strict=True)), n)
    return "\n".join(["text,label", *(f"{text},{label}" for text, label in rows)]).encode()


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    host: str
    port: int
    store: Store

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        link = http.client.HTTPConnection(self.host, self.port, timeout=60)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None and not isinstance(body, bytes):
            body, named = json.dumps(body).encode(), {"content-type": "application/json", **named}
        try:
            link.request(method, path, body, named)
            answer = link.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            link.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        return self.ask("POST", path, body, **headers)

    def train(self, content: bytes | None = None, name: str = "reviews.csv", **spec: Any) -> dict[str, Any]:
        """Upload, train, and wait; the run's last record."""
        upload = self.post(f"/api/uploads?name={name}", table() if content is None else content)
        assert upload.status == 201, upload.body
        run = self.post("/api/runs", {"upload": upload.json["id"], **spec})
        assert run.status == 202, run.body
        return self.ended(run.json["id"])

    def ended(self, run: str) -> dict[str, Any]:
        until(lambda: self.get(f"/api/runs/{run}").json["state"] not in ("queued", "running"))
        return self.get(f"/api/runs/{run}").json


def until(true: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


@contextmanager
def serving(folder: Path, **options: Any) -> Iterator[Client]:
    store = Store(folder)
    app = create_app(store, **options)
    config = configured(app, options.get("limits"), host="127.0.0.1", port=0, log_level="critical")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        until(lambda: server.started)
        yield Client("127.0.0.1", server.servers[0].sockets[0].getsockname()[1], store)
    finally:
        server.should_exit = True
        thread.join(20)
        store.close()
        assert not thread.is_alive()


@contextmanager
def process_serving(folder: Path) -> Iterator[tuple[subprocess.Popen[str], Client]]:
    """`keytokens serve` in a process of its own, which ends with the test."""
    code = "import sys; from keytokens.app.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "serve", "--port", "0", "--store", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline().split()[3].rstrip("/").rpartition(":")[2])
            yield process, Client("127.0.0.1", port, None)  # type: ignore[arg-type]
        finally:
            process.kill()


def in_a_loop(story: Coroutine[Any, Any, Any]) -> Any:
    """In a thread of its own: a browser that is open holds the loop of the main one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, story).result()


UPLOAD = "0123456789abcdef"
SPEC = {"upload": UPLOAD, "text": None, "label": None, "title": "", "options": {}}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with one upload, from which a training takes a while."""
    made = Store(tmp_path)
    file = made.upload_path(UPLOAD, ".csv")
    file.write_bytes(table(4000))
    made.add_upload(UPLOAD, "r.csv", file, facts_of(str(file), "csv", "r.csv"))
    return made


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "reviews"
    KeyTokenClassifier().fit(*reviews(80)).save(folder)
    return folder


@pytest.fixture(scope="session")
def server(tmp_path_factory) -> Iterator[Client]:
    with serving(tmp_path_factory.mktemp("store"), limits=Limits(body=100_000, texts=20, text=5_000)) as client:
        yield client


@pytest.fixture(scope="session")
def trained(server) -> str:
    """Id of a model that the server trained."""
    run = server.train(title="mine")
    assert run["state"] == "done", run
    return run["model"]
