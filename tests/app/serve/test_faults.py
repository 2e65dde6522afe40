"""What goes wrong around the server: clients that leave, disks that are full, words that come at the wrong moment."""

from __future__ import annotations

import asyncio
import errno
import http.client
import json
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from keytokens.app.serve import Limits, Store
from keytokens.app.serve.models import Shelf, take_in
from keytokens.app.serve.runs import Busy, Runs
from keytokens.app.serve.store import NotThere
from keytokens.app.serve.worker import facts_of, look
from keytokens.base.errors import DataError

from .conftest import serving, table, until

FULL = OSError(errno.ENOSPC, "No space left on device")


def store_with_upload(folder) -> tuple[Store, str]:
    store = Store(folder)
    id = "0123456789abcdef"
    file = store.upload_path(id, ".csv")
    file.write_bytes(table(4000))
    store.add_upload(id, "r.csv", file, facts_of(str(file), "csv", "r.csv"))
    return store, id


def spec(upload: str) -> dict[str, object]:
    return {"upload": upload, "text": None, "label": None, "title": "", "options": {}}


def in_a_loop(story: Coroutine[Any, Any, Any]) -> Any:
    """In a thread of its own: a browser that is open holds the loop of the main one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, story).result()


async def last_state(runs: Runs, id: str) -> str:
    return [record["state"] async for record in runs.events(id) if record][-1]


# --- trainings


def test_cancelled_before_the_first_step(tmp_path):
    """A task that is cancelled before it runs never sees it: the run must end all the same."""
    store, upload = store_with_upload(tmp_path)

    async def story() -> None:
        runs = Runs(store, Limits())
        id = runs.start(spec(upload))
        runs.cancel(id)
        assert await asyncio.wait_for(last_state(runs, id), 20) == "cancelled"
        assert store.run(id)["state"] == "cancelled"
        runs.cancel(id)
        assert store.run(id)["state"] == "cancelled", "one that has ended stays as it is"

    in_a_loop(story())


def test_cancelled_again_and_again(tmp_path):
    store, upload = store_with_upload(tmp_path)

    async def story() -> None:
        runs = Runs(store, Limits())
        id = runs.start(spec(upload))
        while runs.latest(id)["progress"]["stage"] in ("queued", "running"):
            await asyncio.sleep(0.01)
        for _ in range(5):
            runs.cancel(id)
            await asyncio.sleep(0)
        assert await asyncio.wait_for(last_state(runs, id), 20) == "cancelled"
        await runs.close()

    in_a_loop(story())
    assert list((tmp_path / "models").iterdir()) == []


def test_closing_ends_what_waits_and_what_runs(tmp_path):
    store, upload = store_with_upload(tmp_path)

    async def story() -> None:
        runs = Runs(store, Limits())
        ids = [runs.start(spec(upload)) for _ in range(3)]
        listeners = [asyncio.create_task(last_state(runs, id)) for id in ids]
        while store.run(ids[0])["state"] != "running":
            await asyncio.sleep(0.01)
        await runs.close()
        assert await asyncio.wait_for(asyncio.gather(*listeners), 20) == ["interrupted"] * 3
        with pytest.raises(Busy, match="about to end"):
            runs.start(spec(upload))

    in_a_loop(story())
    assert {run["state"] for run in store.runs()} == {"interrupted"}


def test_a_listener_after_the_end_leaves_nothing(tmp_path):
    store, upload = store_with_upload(tmp_path)

    async def story() -> None:
        runs = Runs(store, Limits())
        id = runs.start(spec(upload))
        runs.cancel(id)
        await last_state(runs, id)
        for _ in range(3):
            assert await last_state(runs, id) == "cancelled"
        assert not runs._changed
        assert not runs._latest
        assert not runs._stopping

    in_a_loop(story())


def test_an_upload_that_went_while_its_training_waited(tmp_path):
    store, upload = store_with_upload(tmp_path)

    async def story() -> dict[str, object]:
        runs = Runs(store, Limits())
        id = runs.start(spec(upload))
        store.remove_upload(upload)
        assert await asyncio.wait_for(last_state(runs, id), 20) == "failed"
        return runs.latest(id)

    assert "no upload has the id" in str(in_a_loop(story())["message"])


def test_a_training_ends_even_if_the_store_cannot_say_so(tmp_path, monkeypatch):
    store, upload = store_with_upload(tmp_path)

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    async def story() -> dict[str, object]:
        runs = Runs(store, Limits())
        id = runs.start(spec(upload))
        monkeypatch.setattr(store, "set_run", full)
        assert await asyncio.wait_for(last_state(runs, id), 20) == "failed"
        return runs.latest(id)

    assert in_a_loop(story())["message"] == "the store cannot be written: database or disk is full."


def test_ctrl_c_while_a_page_listens(tmp_path):
    """The end of the server is the end of the training, and of the page's stream."""
    code = "import sys; from keytokens.app.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "serve", "--port", "0", "--store", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        port = int(process.stdout.readline().split()[3].rstrip("/").rpartition(":")[2])
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

        def ask(method, path, body=None):
            link.request(method, path, body, {"content-type": "application/json"})
            return link.getresponse()

        upload = json.loads(ask("POST", "/api/uploads?name=r.csv", table(20_000)).read())["id"]
        run = json.loads(ask("POST", "/api/runs", json.dumps({"upload": upload})).read())["id"]
        stream = ask("GET", f"/api/runs/{run}/events")
        stream.readline()
        process.terminate()
        said = stream.read().decode()
        assert '"state": "interrupted"' in said
        _, complaints = process.communicate(timeout=30)
        assert complaints == ""
        link.close()
    finally:
        process.kill()
        process.wait()


# --- uploads


def test_a_client_that_leaves_in_the_middle_of_an_upload(tmp_path):
    with serving(tmp_path) as client:
        link = socket.create_connection((client.host, client.port), timeout=10)
        link.sendall(b"POST /api/uploads?name=a.csv HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\ntext,")
        until(lambda: any((tmp_path / "uploads").iterdir()))
        link.close()
        until(lambda: not any((tmp_path / "uploads").iterdir()))
        assert client.get("/api/models").status == 200


def test_a_full_disk_during_an_upload(tmp_path, monkeypatch):
    with serving(tmp_path) as client:

        def full(*_: object) -> None:
            raise FULL

        monkeypatch.setattr(client.store, "add_upload", full)
        answer = client.post("/api/uploads?name=a.csv", table())
        assert answer.status == 507
        assert answer.json == {"error": "the store cannot be used: no space left on device."}
        assert list((tmp_path / "uploads").iterdir()) == []


def test_a_real_limit_on_the_size_of_files(tmp_path):
    """The system itself refuses to write: one line for the client, nothing left behind, and the server goes on."""
    resource = pytest.importorskip("resource", reason="limits of this kind are a matter of Unix")
    with serving(tmp_path) as client, limited_files(resource, 200_000):
        answer = client.post("/api/uploads?name=a.csv", table(20_000))
        assert answer.status == 500
        assert answer.json == {"error": "the store cannot be used: file too large."}
        assert list((tmp_path / "uploads").iterdir()) == []
        assert client.post("/api/uploads?name=a.csv", table(20)).status == 201


@contextmanager
def limited_files(resource, size):
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


def test_a_full_base(server, monkeypatch):
    def full(*_: object) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    upload = server.post("/api/uploads?name=a.csv", table()).json["id"]
    monkeypatch.setattr(server.store, "add_run", full)
    answer = server.post("/api/runs", {"upload": upload})
    assert (answer.status, list(answer.json)) == (507, ["error"])


@pytest.mark.parametrize(
    "content, kind, why",
    [
        (",".join(f"c{i}" for i in range(1001)) + "\n" + "," * 1000, "csv", "may have 1,000 columns; saw 1,001"),
        ("x" * 1001 + ",b\n1,2\n", "csv", "a column's name may have 1,000 characters; saw 1,001"),
        ('{"\\ud800": 1}', "jsonl", "column names must be whole characters"),
    ],
)
def test_tables_that_no_page_could_show(tmp_path, content, kind, why):
    file = tmp_path / "file"
    file.write_text(content)
    with pytest.raises(DataError, match=why):
        in_a_loop(look(file, kind, "file", 60))


def test_half_characters_in_cells_and_labels(server):
    """JSON lines may hold what no answer could: cells are shown without it, labels are refused."""
    lines = "".join(json.dumps({"text": f"a b {i} \ud800", "label": ["x", "\udfff"][i % 2]}) + "\n" for i in range(20))
    upload = server.post("/api/uploads?name=a.jsonl", lines.encode())
    assert upload.status == 201
    assert upload.json["preview"][0] == ["a b 0 ?", "x"]
    run = server.train(lines.encode(), name="a.jsonl")
    assert run["state"] == "failed"
    assert "labels must be whole characters" in run["message"]


def test_a_look_that_takes_too_long_is_ended(tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes(table())
    with pytest.raises(DataError, match="took too long"):
        in_a_loop(look(file, "csv", "a.csv", 0.0))


# --- models


def test_a_row_that_cannot_be_written_leaves_no_model(tmp_path, model, monkeypatch):
    store = Store(tmp_path / "store")
    write = store._write

    def full(statement: str, values: tuple[object, ...]) -> None:
        if "models" in statement:
            raise sqlite3.OperationalError("database or disk is full")
        write(statement, values)

    monkeypatch.setattr(store, "_write", full)
    with pytest.raises(sqlite3.OperationalError):
        take_in(store, model)
    store.close()
    assert Store(tmp_path / "store").models() == []


def test_a_row_that_cannot_go_keeps_its_model(tmp_path, model, monkeypatch):
    store = Store(tmp_path / "store")
    id = take_in(store, model)

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(store, "_write", full)
    with pytest.raises(sqlite3.OperationalError):
        store.remove_model(id)
    assert Shelf(store, 1).model(id).predict(["a great film"]).tolist() == ["pos"]


def test_a_shelf_keeps_few_and_forgets_what_went(tmp_path, model):
    store = Store(tmp_path / "store")
    first = take_in(store, model)
    second = "f" * 16
    shutil.copytree(store.model_folder(first), store.model_folder(second))
    store.add_model(second)
    shelf = Shelf(store, 1)
    assert shelf.model(first) is shelf.model(first)
    shelf.model(second)
    assert list(shelf._kept) == [second]
    store.remove_model(second)
    shelf.forget(second)
    assert not shelf._kept
    with pytest.raises(NotThere):
        shelf.model(second)


def test_removed_while_it_is_loaded(tmp_path, model, monkeypatch):
    store = Store(tmp_path / "store")
    id = take_in(store, model)
    shelf = Shelf(store, 2)

    def slow(folder):
        store.remove_model(id)
        shelf.forget(id)
        return "a model"

    monkeypatch.setattr("keytokens.app.serve.models.load", slow)
    with pytest.raises(NotThere):
        shelf.model(id)
    assert not shelf._kept


def test_a_crowd_reads_a_model_once(tmp_path, model, monkeypatch):
    store = Store(tmp_path / "store")
    id = take_in(store, model)
    shelf, reads = Shelf(store, 2), []
    monkeypatch.setattr("keytokens.app.serve.models.load", lambda folder: reads.append(folder) or "a model")
    threads = [threading.Thread(target=shelf.model, args=(id,)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reads) == 1


def test_a_model_from_elsewhere_is_listed(tmp_path, model):
    """Nobody knows how many texts it was trained on."""
    with serving(tmp_path) as client:
        id = take_in(client.store, model)
        assert [record["texts"] for record in client.get("/api/models").json["models"]] == [None]
        assert client.get(f"/api/models/{id}").status == 200


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "//", "\xff"])
def test_origins_that_are_no_addresses(server, origin):
    assert server.get("/api/models", origin=origin).status == 403
