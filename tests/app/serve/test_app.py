"""The routes, as a script would use them."""

import io
import json
import zipfile

import pytest

from keytokens import load
from keytokens.app.serve import Limits
from keytokens.app.serve.models import take_in

from .conftest import process_serving, serving, table, until


def test_train_predict_explain(server, trained, tmp_path):
    record = server.get(f"/api/models/{trained}").json
    assert record["name"] == "mine"
    assert record["source"] == "reviews.csv"
    assert record["score"]["n"] == 60
    texts = ["a great film", "awful", "", "nothing known"]
    clf = load(server.store.model_folder(trained) / "model")
    answer = server.post(f"/api/models/{trained}/predict", {"texts": texts}).json
    assert answer["labels"] == clf.predict(texts).tolist()
    assert answer["probabilities"] == clf.predict_proba(texts).tolist()
    for words in (False, True):
        asked = {"texts": texts, "words": words}
        explained = server.post(f"/api/models/{trained}/explain", asked).json["explanations"]
        assert explained == [json.loads(json.dumps(clf.explain(text).to_dict(words))) for text in texts]
        assert all(("flip_words" in record) == words for record in explained)
    assert "flip_words" not in server.post(f"/api/models/{trained}/explain", {"texts": ["a"]}).json["explanations"][0]


def test_downloads(server, trained, tmp_path):
    archive = zipfile.ZipFile(io.BytesIO(server.get(f"/api/models/{trained}/download").body))
    archive.extractall(tmp_path)
    assert load(tmp_path / "model").predict(["a great film"]).tolist() == ["pos"]
    report = server.get(f"/models/{trained}/report.html")
    assert report.headers["content-disposition"].startswith("attachment")
    assert b'id="kt-model"' in report.body


def test_pages_and_containers(server, trained):
    assert b"Train a model" in server.get("/").body
    page = server.get(f"/models/{trained}")
    assert f'content="/models/{trained}/"'.encode() in page.body
    for part in ("model", "overview", "documents"):
        answer = server.get(f"/models/{trained}/{part}")
        assert (answer.status, answer.headers["content-type"]) == (200, "application/octet-stream")
    assert server.get(f"/models/{trained}/facts").status == 404
    assert server.get(f"/models/{trained}/..%2Ffacts").status == 404


def test_a_training_that_fails_says_why(server):
    run = server.train(b"text,label\nhello,a\nworld,a\n")
    assert run["state"] == "failed"
    assert "at least two classes" in run["message"]
    assert "/" not in run["message"]


def test_cancel_and_queue(tmp_path):
    with serving(tmp_path, limits=Limits(waiting=1)) as client:
        upload = client.post("/api/uploads?name=r.csv", table(4000)).json["id"]
        runs = [client.post("/api/runs", {"upload": upload}).json["id"] for _ in range(2)]
        busy = client.post("/api/runs", {"upload": upload})
        assert busy.status == 429
        assert "at most 1 trainings may wait" in busy.json["error"]
        assert client.post(f"/api/runs/{runs[1]}/cancel", {}).json["state"] == "cancelled"
        client.post(f"/api/runs/{runs[0]}/cancel", {})
        assert client.ended(runs[0])["state"] in ("cancelled", "done")
        until(lambda: not any(path.name.startswith(".") for path in (tmp_path / "models").iterdir()))


def test_remove(server, model):
    id = take_in(server.store, model)
    assert server.ask("DELETE", f"/api/models/{id}").status == 204
    assert server.get(f"/api/models/{id}").status == 404
    assert server.post(f"/api/models/{id}/predict", {"texts": []}).status == 404


@pytest.mark.parametrize(
    "method, path, body, status, why",
    [
        ("GET", "/nothing", None, 404, "Not Found"),
        ("GET", "/api/models/zz", None, 404, "no model has the id"),
        ("PUT", "/api/models", b"", 405, "Method Not Allowed"),
        ("POST", "/api/models/MODEL/predict", b"{", 422, "valid"),
        ("POST", "/api/models/MODEL/predict", {"texts": "one"}, 422, "texts: input should be a valid list"),
        ("POST", "/api/models/MODEL/predict", {"texts": [1]}, 422, "texts.0: input should be a valid string"),
        ("POST", "/api/models/MODEL/predict", {"texts": [], "more": 1}, 422, "more: extra inputs"),
        ("POST", "/api/models/MODEL/predict", {"texts": ["x"] * 21}, 413, "may have 20 texts; saw 21"),
        ("POST", "/api/models/MODEL/explain", {"texts": ["x" * 5001]}, 413, "may have 5,000 characters"),
        ("POST", "/api/models/MODEL/explain", {"texts": ["x" * 100_000]}, 413, "may have 100,000 bytes"),
        ("POST", "/api/uploads", b"x", 422, "name"),
        ("POST", "/api/uploads?name=a.exe", b"x", 415, "must end in one of"),
        ("POST", "/api/uploads?name=a.csv", b"", 400, "a.csv: the file must hold a table"),
        ("POST", "/api/uploads?name=a.csv", b"text,label\n\xff", 400, "must be UTF-8"),
        ("POST", "/api/uploads?name=a.parquet", b"PAR1", 400, "a.parquet"),
        ("POST", "/api/runs", {"upload": "0" * 16}, 404, "no upload has the id"),
        ("POST", "/api/runs", {"upload": "../../x"}, 404, "no upload has the id"),
        ("POST", "/api/runs", {"upload": "0" * 16, "options": {"ngrams": 9}}, 422, "options.ngrams"),
        ("POST", "/api/runs/zz/cancel", {}, 404, "no run has the id"),
        ("GET", "/api/runs/zz/events", None, 404, "no run has the id"),
    ],
)
def test_bad_requests(server, trained, method, path, body, status, why):
    answer = server.ask(method, path.replace("MODEL", trained), body)
    assert answer.status == status, answer.body
    assert list(answer.json) == ["error"]
    assert why in answer.json["error"]
    assert "\n" not in answer.json["error"]


def test_a_refused_upload_leaves_nothing(server):
    before = set((server.store.folder / "uploads").iterdir())
    server.post("/api/uploads?name=a.csv", b"")
    assert set((server.store.folder / "uploads").iterdir()) == before


def test_killed_during_training(tmp_path, model):
    """SIGKILL: finished models stay, the run is interrupted, no process is left, and the server starts again."""
    with serving(tmp_path) as client:
        kept = take_in(client.store, model)
    with process_serving(tmp_path) as (process, client):
        upload = client.post("/api/uploads?name=r.csv", table(4_000)).json["id"]
        run = client.post("/api/runs", {"upload": upload}).json["id"]
        until(lambda: (client.get(f"/api/runs/{run}").json["progress"] or {}).get("stage") != "queued")
        process.kill()
    with serving(tmp_path) as client:
        assert [record["id"] for record in client.get("/api/models").json["models"]] == [kept]
        assert client.get(f"/api/runs/{run}").json["state"] == "interrupted"
        assert client.train(title="again")["state"] == "done"
