"""Other sites, other machines, long and slow requests."""

import pytest

from keytokens.app.serve import Limits
from keytokens.app.serve.guard import is_loopback

from .conftest import serving

TOKEN = "a-token-of-some-length"


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("locked"), token=TOKEN, hosts=()) as client:
        yield client


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "", "evil.example:80"])
def test_other_hosts_are_refused(server, host):
    """A name of another site that was made to point to this machine."""
    answer = server.get("/api/models", host=host)
    assert answer.status in (400, 421)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "localhost:99"])
def test_our_hosts(server, host):
    assert server.get("/api/models", host=host).status == 200


def test_other_origins_are_refused(server):
    for origin in ("http://evil.example", "null", f"https://127.0.0.1:{server.port + 1}", "http://localhost"):
        answer = server.get("/api/models", origin=origin)
        assert answer.status == 403
        assert "other sites" in answer.json["error"]
    assert server.get("/api/models", origin=f"http://127.0.0.1:{server.port}").status == 200


def test_what_browsers_say_of_the_asking_page(server):
    assert server.get("/api/models", sec_fetch_site="cross-site").status == 403
    assert server.get("/", sec_fetch_site="cross-site", sec_fetch_mode="navigate").status == 200
    assert server.post("/api/runs", {}, sec_fetch_site="cross-site", sec_fetch_mode="navigate").status == 403


def test_the_token(locked):
    assert locked.get("/api/models").status == 401
    assert locked.get("/api/models", authorization="Bearer wrong").status == 401
    assert locked.get("/api/models", authorization=f"Bearer {TOKEN}").status == 200
    first = locked.get(f"/?token={TOKEN}")
    assert first.status == 200
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert locked.get("/api/models", cookie=cookie.split(";")[0]).status == 200
    assert locked.get("/api/models", cookie="keytokens-token=no").status == 401
    assert "set-cookie" not in locked.get("/api/models", authorization=f"Bearer {TOKEN}").headers


def test_every_answer_is_dressed(server):
    for answer in (server.get("/"), server.get("/nothing"), server.get("/", host="evil.example")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"


def test_too_many_at_once(tmp_path):
    with serving(tmp_path, limits=Limits(requests=0)) as client:
        answer = client.get("/")
        assert answer.status == 503
        assert "Try again" in answer.json["error"]


@pytest.mark.parametrize("host, local", [("127.0.0.1", True), ("127.1.2.3", True), ("::1", True), ("0.0.0.0", False)])
def test_loopback(host, local):
    assert is_loopback(host) == local
