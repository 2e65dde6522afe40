"""Slow and greedy clients: what they are refused, and that others are served all the while."""

import asyncio
import bz2
import gzip
import json
import logging
import lzma
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager

import pytest

from keytokens.app.serve import Limits, connections
from keytokens.app.serve.connections import configured, room_for
from keytokens.app.serve.models import take_in
from keytokens.explain.text import Explanation

from .conftest import serving, table, until

HALF = b"GET /api/models HTTP/1.1\r\nHost: localhost\r\nX-Half: "


def link_to(client, content=b"", receive=None) -> socket.socket:
    link = socket.socket()
    if receive is not None:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    link.settimeout(20)
    link.connect((client.host, client.port))
    link.sendall(content)
    return link


def rest_of(link) -> bytes:
    """What comes until the other side closes."""
    said = b""
    try:
        while piece := link.recv(1 << 16):
            said += piece
    except ConnectionResetError:
        return said
    return said


def said_to_drops(link) -> bytes:
    """What comes while a letter is sent now and then."""
    link.settimeout(0.05)
    for _ in range(400):
        link.sendall(b"x")
        try:
            return link.recv(1000)
        except TimeoutError:
            continue
    raise AssertionError("nothing came")


def post(path, length, body=b"") -> bytes:
    headers = f"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    return f"POST {path} HTTP/1.1\r\n{headers}".encode() + body


@contextmanager
def serving_model(folder, model, **limits):
    with serving(folder, limits=Limits(**limits)) as client:
        yield client, f"/api/models/{take_in(client.store, model)}"


# --- connections


def test_headers_must_arrive_in_time(tmp_path):
    """A letter now and then is no reason to wait on; who says nothing gets no answer, as before a request."""
    with serving(tmp_path, limits=Limits(header_seconds=0.5)) as client:
        with closing(link_to(client, HALF)) as link, closing(link_to(client)) as silent:
            assert said_to_drops(link).startswith(b"HTTP/1.1 408 ")
            assert rest_of(silent) == b""
        with closing(link_to(client, b"GET /api/models HTTP/1.1\r\nHost: localhost\r\n\r\n")) as link:
            assert b" 200 " in link.recv(1000)
            link.sendall(HALF)  # the second request of a connection has the same time
            assert b" 408 " in rest_of(link)


def test_half_open_connections_leave_room(tmp_path):
    """The oldest goes: the newcomer asks at once, and is served."""
    with ExitStack() as stack:
        client = stack.enter_context(serving(tmp_path, limits=Limits(connections=20, header_seconds=600)))
        half = [stack.enter_context(closing(link_to(client, HALF))) for _ in range(60)]
        for _ in range(5):
            assert client.get("/api/models").status == 200
        assert all(rest_of(link) == b"" for link in half[:40]), "they were closed"
        half[-1].sendall(b"\r\n\r\n")
        assert b" 200 " in half[-1].recv(1000), "one of the last is still there"


def test_bodies_that_do_not_come_leave_room(tmp_path):
    """They take no place among the requests at work, and are closed before others."""
    with ExitStack() as stack:
        client = stack.enter_context(serving(tmp_path, limits=Limits(connections=20, requests=4)))
        for path in ("/api/runs", "/api/runs/zz/cancel", "/api/uploads?name=a.csv"):
            for _ in range(15):
                stack.enter_context(closing(link_to(client, post(path, 500, b"{"))))
            assert client.get("/api/models").status == 200
            assert client.post("/api/models/zz/predict", {"texts": []}).status == 404


def test_idle_connections_leave_room(tmp_path):
    with ExitStack() as stack:
        client = stack.enter_context(serving(tmp_path, limits=Limits(connections=10)))
        for _ in range(40):
            link = stack.enter_context(closing(link_to(client, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")))
            assert b" 200 " in link.recv(100)


def test_connections_are_fewer_than_files(monkeypatch):
    resource = pytest.importorskip("resource", reason="limits of this kind are a matter of Unix")
    limits = [1024, 1024]
    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(limits))
    monkeypatch.setattr(resource, "setrlimit", lambda _, given: limits.__setitem__(slice(None), given))
    assert room_for(4_000) == 448, "each may have a file of its own"
    assert room_for(100) == 100
    limits[1] = 4096
    assert room_for(4_000) == 1984
    assert limits == [4096, 4096]
    limits[:] = [256, resource.RLIM_INFINITY]
    assert room_for(4_000) == 4_000
    assert limits == [8128, resource.RLIM_INFINITY]
    limits[:] = [40, 40]
    assert room_for(4_000) == 16


def test_the_log_says_it_once(monkeypatch):
    """asyncio says for each connection that it has no file for, with a traceback: gigabytes an hour."""

    async def flood() -> None:
        loop = asyncio.get_running_loop()
        for _ in range(1_000):
            error = OSError(24, "Too many open files")
            loop.call_exception_handler({"message": "socket.accept() out of system resource", "exception": error})
            logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
        loop.call_exception_handler({"message": "another"})

    configured(lambda *_: None, log_config=None)
    monkeypatch.setattr(connections._SELDOM, "_said", {})
    said: list[str] = []
    for name in ("asyncio", "uvicorn.error"):
        logger, handler = logging.getLogger(name), logging.Handler()
        handler.emit = lambda record: said.append(record.getMessage().split("\n")[0])
        monkeypatch.setattr(logger, "handlers", [handler])
        monkeypatch.setattr(logger, "level", logging.WARNING)
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, flood()).result()
    assert sorted(said) == ["Invalid HTTP request received.", "another", "socket.accept() out of system resource"]


# --- bodies


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("path", ["/api/runs", "/api/uploads?name=a.csv"])
def test_a_body_over_the_limit_gets_its_answer(tmp_path, path, declared):
    """Although the client looks for it only when all is sent."""
    length = 20_000_000
    pieces = [b"100000\r\n" + b"x" * (1 << 20) + b"\r\n"] * 19
    upload = 50_000_000 if declared or path == "/api/runs" else 12_000_000
    with serving(tmp_path, limits=Limits(body=100_000, upload=upload)) as client:
        head = post(path, length if path == "/api/runs" or not declared else 90_000_000)
        if not declared:
            head = head.replace(f"Content-Length: {length}".encode(), b"Transfer-Encoding: chunked")
        with closing(link_to(client, head)) as link:
            if declared:
                link.sendall(b"x" * length)
                link.shutdown(socket.SHUT_WR)
            else:
                for piece in pieces:
                    link.sendall(piece)
                link.sendall(b"0\r\n\r\n")
            said = rest_of(link)
        assert said.startswith(b"HTTP/1.1 413 ")
        assert b"connection: close" in said
        assert said.endswith(b'bytes; saw more."}') or declared


def test_reading_on_has_an_end(tmp_path):
    with serving(tmp_path, limits=Limits(body=1_000, upload=2_000, idle_seconds=0.5)) as client:
        with closing(link_to(client, post("/api/runs", 5_000, b"x"))) as silent:
            assert rest_of(silent).startswith(b"HTTP/1.1 413 ")
        with closing(link_to(client, post("/api/runs", 1_000_000_000))) as link, pytest.raises(ConnectionError):
            link.sendall(bytes(100_000_000))


@pytest.mark.parametrize("path", ["/api/runs", "/api/uploads?name=a.csv"])
def test_a_body_must_keep_up(tmp_path, path):
    """Silence ends it; a byte now and then is not enough either, although it is never silent for long."""
    for limits in (Limits(body_seconds=0.3, idle_seconds=0.3), Limits(body_seconds=0.3, idle_seconds=5, rate=1_000)):
        with serving(tmp_path, limits=limits) as client, closing(link_to(client, post(path, 500, b"{"))) as link:
            assert b" 408 " in (rest_of(link) if limits.idle_seconds < 1 else said_to_drops(link))
        assert list((tmp_path / "uploads").iterdir()) == []


def test_room_for_bodies_and_uploads(tmp_path):
    with serving(tmp_path, limits=Limits(bodies=1_000, uploads=0)) as client:
        answer = client.post("/api/runs", {"upload": "x" * 2_000})
        assert (answer.status, answer.json["error"]) == (503, "too many requests at once. Try again in a moment.")
        assert client.post("/api/runs", {"upload": "0" * 16}).status == 404, "the room was given back"
        answer = client.post("/api/uploads?name=a.csv", table())
        assert (answer.status, "at most 0 uploads" in answer.json["error"]) == (503, True)


@pytest.mark.parametrize(
    "body, why",
    [
        ({"texts": [1] * 300_000}, "texts.0: input should be a valid string."),
        ({"texts": [], **{f"{i}": 1 for i in range(100_000)}}, "a request may have 100 names; saw 100,001."),
    ],
)
def test_one_complaint_for_a_million_mistakes(tmp_path, body, why):
    with serving(tmp_path) as client:
        answer = client.post("/api/models/zz/predict", body)
        assert answer.status == 422
        assert why in answer.json["error"]


# --- answers


@contextmanager
def long_answers(folder, model, **limits):
    """A server, and how to begin to read its longest answer; the system itself holds some megabytes of one."""
    with ExitStack() as stack:
        client, path = stack.enter_context(serving_model(folder, model, **limits))
        id = path.rpartition("/")[2]
        (client.store.model_folder(id) / "overview.bin").write_bytes(bytes(6_000_000))
        page = f"/models/{id}/report.html"

        def begun(n: int) -> list[socket.socket]:
            request = f"GET {page} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
            links = [stack.enter_context(closing(link_to(client, request, receive=4096))) for _ in range(n)]
            assert all(b" 200 " in link.recv(100) for link in links)
            return links

        yield client, page, begun


def test_answers_that_nobody_reads_take_no_place(tmp_path, model):
    """Not among the requests at work; and they are closed before others."""
    with long_answers(tmp_path, model, requests=4, connections=6, idle_seconds=600) as (client, _, begun):
        links = begun(4) + begun(4)
        assert client.get("/api/models").status == 200
        *older, newest = (len(rest_of(link)) for link in links)
        assert min(older[:4]) < newest, "one of the oldest, which begin together, was closed; the newest can be read"


@pytest.mark.parametrize("limits", [{"idle_seconds": 0.3, "rate": 1_000_000_000}, {"bodies": 15_000_000}])
def test_answers_that_nobody_reads_are_ended(tmp_path, model, limits):
    """After a while, or at once where all of them together take too much memory."""
    with long_answers(tmp_path, model, **limits) as (client, page, begun):
        links = begun(4)
        time.sleep(1.5)
        sizes = [len(rest_of(link)) for link in links]
        whole = len(client.get(page).body)
        assert min(sizes) < whole
        assert (max(sizes) > whole) == ("bodies" in limits), "the last one can still be read, headers and all"


def test_pages_that_follow_a_training_are_counted(tmp_path):
    with serving(tmp_path, limits=Limits(streams=1, trainings=0)) as client:
        upload = client.post("/api/uploads?name=a.csv", table()).json["id"]
        run = client.post("/api/runs", {"upload": upload}).json["id"]
        path = f"/api/runs/{run}/events"
        with closing(link_to(client, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())) as link:
            assert b" 200 " in link.recv(1000)
            until(lambda: client.ask("HEAD", path).status == 503)
        until(lambda: client.ask("HEAD", path).status == 200)


def test_head_is_get_without_its_body(server, trained):
    run = server.get("/api/runs").json["runs"][0]["id"]
    upload = server.post("/api/uploads?name=a.csv", table()).json["id"]
    routes = server.get("/openapi.json").json["paths"]
    api = [path.replace("{id}", "ID") for path in routes if "get" in routes[path]]
    assert len(api) >= 7
    ids = {"models": trained, "runs": run, "uploads": upload}
    pages = ["/", "/openapi.json", "/nothing", "/api/models/zz"]
    pages += [f"/models/{trained}{part}" for part in ("", "/report.html", "/overview", "/nothing")]
    for path in [*pages, *(path.replace("ID", ids[path.split("/")[2]]) for path in api)]:
        head, get = server.ask("HEAD", path), server.get(path)
        assert (head.status, head.body) == (get.status, b""), path
        assert {**head.headers, "date": ""} == {**get.headers, "date": ""}, path
    assert server.ask("HEAD", "/api/runs/zz/cancel").status == 405


# --- work


def test_what_a_request_to_explain_may_cost(tmp_path, model):
    with serving_model(tmp_path, model, explain=100, explain_words=50) as (client, path):
        texts = ["a great film"] * 6
        assert client.post(f"{path}/explain", {"texts": texts}).status == 200
        assert client.post(f"{path}/predict", {"texts": texts * 100}).status == 200
        answer = client.post(f"{path}/explain", {"texts": texts * 2})
        assert answer.status == 413
        assert answer.json["error"] == "texts to explain may have 100 characters in all; saw 144."
        assert client.post(f"{path}/explain", {"texts": texts, "words": True}).status == 413


def test_work_ends_with_its_client(tmp_path, model, monkeypatch):
    """Between two texts; the answer to the next client is the right one."""
    explained = []
    whole = Explanation.to_dict

    def slow(explanation, *options):
        explained.append(1)
        time.sleep(0.2)
        return whole(explanation, *options)

    with serving_model(tmp_path, model) as (client, path):
        expected = client.post(f"{path}/explain", {"texts": ["a great film"]}).json
        monkeypatch.setattr(Explanation, "to_dict", slow)
        body = json.dumps({"texts": ["great " * 1_650] * 20}).encode()
        link = link_to(client, post(f"{path}/explain", len(body), body))
        until(lambda: len(explained) > 0)
        link.close()
        assert client.post(f"{path}/explain", {"texts": ["a great film"]}).json == expected
        time.sleep(0.5)
        assert len(explained) <= 5


# --- uploads


@pytest.mark.parametrize("pack, ending", [(gzip.compress, ".gz"), (bz2.compress, ".bz2"), (lzma.compress, ".XZ")])
def test_packed_tables_are_taken(server, pack, ending):
    upload = server.post(f"/api/uploads?name=r.csv{ending}", pack(table()))
    assert upload.status == 201, upload.body
    assert (upload.json["rows"], upload.json["format"]) == (60, "csv")
    file = server.store.upload_file(upload.json["id"])
    assert file.name.endswith(f".csv{ending.lower()}")
    if ending == ".XZ":
        run = server.post("/api/runs", {"upload": upload.json["id"]}).json["id"]
        assert server.ended(run)["state"] == "done"
    assert server.ask("DELETE", f"/api/uploads/{upload.json['id']}").status == 204
    assert not file.exists()


@pytest.mark.parametrize("name", ["-", ".gz", "r.gz", "r.csv.zip", "r.csv.gz.gz"])
def test_names_that_say_nothing(server, name):
    answer = server.post(f"/api/uploads?name={name}", table())
    assert answer.status == 415
    assert "which .gz, .bz2, .xz may follow" in answer.json["error"]


def test_a_small_file_that_unpacks_to_a_large_one(tmp_path):
    with serving(tmp_path, limits=Limits(upload=100_000)) as client:
        packed = gzip.compress(b"text,label\n" + b"a,b\n" * 50_000)
        assert len(packed) < 1_000
        answer = client.post("/api/uploads?name=r.csv.gz", packed)
        assert answer.status == 400
        assert "r.csv.gz: a table may unpack to 100,000 bytes; saw more" in answer.json["error"]
        assert list((tmp_path / "uploads").iterdir()) == []
