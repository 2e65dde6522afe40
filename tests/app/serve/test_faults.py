"""What goes wrong around the server: clients that leave, disks that are full, words that come at the wrong moment."""

import asyncio
import errno
import http.client
import shutil
import socket
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from keytokens.app.serve import Limits, Store
from keytokens.app.serve.models import Shelf, take_in
from keytokens.app.serve.runs import Busy, Runs
from keytokens.app.serve.store import NotThere
from keytokens.app.serve.worker import look
from keytokens.base.errors import DataError

from .conftest import SPEC, UPLOAD, in_a_loop, process_serving, serving, table, until


def full_base(*_: object) -> None:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    raise error


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


async def last_state(runs: Runs, id: str) -> str:
    return [record["state"] async for record in runs.events(id) if record][-1]


# --- trainings


def test_cancelled_before_the_first_step(store):
    """A task that is cancelled before it runs never sees it: the run must end all the same."""

    async def story() -> None:
        runs = Runs(store, Limits())
        id = runs.start(SPEC)
        runs.cancel(id)
        assert await asyncio.wait_for(last_state(runs, id), 20) == "cancelled"
        assert store.run(id)["state"] == "cancelled"
        runs.cancel(id)
        assert store.run(id)["state"] == "cancelled", "one that has ended stays as it is"

    in_a_loop(story())


def test_cancelled_again_and_again(store, tmp_path):
    async def story() -> None:
        runs = Runs(store, Limits())
        id = runs.start(SPEC)
        while runs.latest(id)["progress"]["stage"] in ("queued", "running"):
            await asyncio.sleep(0.01)
        for _ in range(5):
            runs.cancel(id)
            await asyncio.sleep(0)
        assert await asyncio.wait_for(last_state(runs, id), 20) == "cancelled"
        await runs.close()

    in_a_loop(story())
    assert list((tmp_path / "models").iterdir()) == []


def test_closing_ends_what_waits_and_what_runs(store):
    async def story() -> None:
        runs = Runs(store, Limits())
        ids = [runs.start(SPEC) for _ in range(3)]
        listeners = [asyncio.create_task(last_state(runs, id)) for id in ids]
        while store.run(ids[0])["state"] != "running":
            await asyncio.sleep(0.01)
        await runs.close()
        assert await asyncio.wait_for(asyncio.gather(*listeners), 20) == ["interrupted"] * 3
        with pytest.raises(Busy, match="about to end"):
            runs.start(SPEC)

    in_a_loop(story())
    assert {run["state"] for run in store.runs()} == {"interrupted"}


def test_a_listener_after_the_end_leaves_nothing(store):
    async def story() -> None:
        runs = Runs(store, Limits())
        id = runs.start(SPEC)
        runs.cancel(id)
        await last_state(runs, id)
        for _ in range(3):
            assert await last_state(runs, id) == "cancelled"
        assert not runs._changed
        assert not runs._latest
        assert not runs._stopping

    in_a_loop(story())


def test_an_upload_that_went_while_its_training_waited(store):
    async def story() -> dict[str, object]:
        runs = Runs(store, Limits())
        id = runs.start(SPEC)
        store.remove_upload(UPLOAD)
        assert await asyncio.wait_for(last_state(runs, id), 20) == "failed"
        return runs.latest(id)

    assert "no upload has the id" in str(in_a_loop(story())["message"])


def test_a_training_ends_even_if_the_store_cannot_say_so(store, monkeypatch):
    async def story() -> dict[str, object]:
        runs = Runs(store, Limits())
        id = runs.start(SPEC)
        monkeypatch.setattr(store, "set_run", full_base)
        assert await asyncio.wait_for(last_state(runs, id), 20) == "failed"
        return runs.latest(id)

    assert in_a_loop(story())["message"] == "the store cannot be written: database or disk is full."


def test_ctrl_c_while_a_page_listens(tmp_path):
    """The end of the server is the end of the training, and of the page's stream."""
    with process_serving(tmp_path) as (process, client):
        upload = client.post("/api/uploads?name=r.csv", table(4_000)).json["id"]
        run = client.post("/api/runs", {"upload": upload}).json["id"]
        link = http.client.HTTPConnection(client.host, client.port, timeout=30)
        link.request("GET", f"/api/runs/{run}/events")
        stream = link.getresponse()
        stream.readline()
        process.terminate()
        assert '"state": "interrupted"' in stream.read().decode()
        _, complaints = process.communicate(timeout=30)
        assert complaints == ""
        link.close()


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
        monkeypatch.setattr(client.store, "add_upload", full_disk)
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
    upload = server.post("/api/uploads?name=a.csv", table()).json["id"]
    monkeypatch.setattr(server.store, "add_run", full_base)
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


def test_a_look_that_takes_too_long_is_ended(tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes(table())
    with pytest.raises(DataError, match="took too long"):
        in_a_loop(look(file, "csv", "a.csv", 0.0))


# --- models

REFUSES = "BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END"


def in_base(folder, statement: str) -> None:
    """Something is done to the base of a store from elsewhere."""
    with closing(sqlite3.connect(folder / "store.sqlite")) as base:
        base.executescript(statement)


@pytest.fixture
def reads(monkeypatch) -> list[Path]:
    """The folders of models, each time that one is read."""
    seen: list[Path] = []
    monkeypatch.setattr("keytokens.app.serve.models.load", lambda folder: seen.append(folder) or "a model")
    return seen


def test_a_row_that_cannot_be_written_leaves_no_model(tmp_path, model):
    Store(tmp_path).close()
    in_base(tmp_path, f"CREATE TRIGGER full BEFORE INSERT ON models {REFUSES}")
    store = Store(tmp_path)
    with pytest.raises(sqlite3.Error, match="is full"):
        take_in(store, model)
    store.close()
    in_base(tmp_path, "DROP TRIGGER full")
    assert Store(tmp_path).models() == []


def test_a_row_that_cannot_go_keeps_its_model(tmp_path, model):
    store = Store(tmp_path)
    id = take_in(store, model)
    store.close()
    in_base(tmp_path, f"CREATE TRIGGER full BEFORE DELETE ON models {REFUSES}")
    store = Store(tmp_path)
    with pytest.raises(sqlite3.Error, match="is full"):
        store.remove_model(id)
    assert Shelf(store, 1).model(id).predict(["a great film"]).tolist() == ["pos"]


def test_a_shelf_keeps_few_and_forgets_what_went(tmp_path, model, reads):
    store = Store(tmp_path)
    first, second = take_in(store, model), "f" * 16
    shutil.copytree(store.model_folder(first), store.model_folder(second))
    store.add_model(second)
    shelf = Shelf(store, 1)
    for id in (first, first, second, second, first, second):
        shelf.model(id)
    assert [folder.parent.name for folder in reads] == [first, second, first, second]
    store.remove_model(second)
    shelf.forget(second)
    with pytest.raises(NotThere):
        shelf.model(second)


def test_removed_while_it_is_loaded(tmp_path, model, monkeypatch):
    store = Store(tmp_path)
    id = take_in(store, model)
    shelf = Shelf(store, 2)

    def slow(folder):
        store.remove_model(id)
        shelf.forget(id)
        return "a model"

    monkeypatch.setattr("keytokens.app.serve.models.load", slow)
    for _ in range(2):  # nor is it kept for the next one
        with pytest.raises(NotThere):
            shelf.model(id)


def test_a_crowd_reads_a_model_once(tmp_path, model, reads):
    store = Store(tmp_path)
    id = take_in(store, model)
    shelf = Shelf(store, 2)
    with ThreadPoolExecutor(20) as crowd:
        assert list(crowd.map(shelf.model, [id] * 20)) == ["a model"] * 20
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
