"""A store and requests made by somebody who means harm: what the fuzzing found, one test each."""

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from keytokens.app.serve import Store, create_app
from keytokens.app.serve import app as routes
from keytokens.app.serve.models import take_in
from keytokens.app.serve.store import NotThere
from keytokens.base.errors import InputError, OutputError, shorten

from ...asgi import asked
from .conftest import UPLOAD as ID
from .conftest import in_a_loop
from .test_faults import full_base, in_base


@pytest.fixture
def stored(tmp_path, model):
    """A store with one model, whose row is gone: the next start takes it in again."""
    store = Store(tmp_path / "store")
    id = take_in(store, model)
    store.close()
    in_base(tmp_path / "store", "DELETE FROM models")
    return tmp_path / "store", id


CHANGES = [{"name": 5}, {"bytes": None}, {"score": "a"}, {"tokens": "many"}, {"classes": {}}]
NONSENSE = [b"", b"{", b"[]", b"null", b"\xff", b'{"name": 5}', b'{"name": "\\ud800"}', b"[" * 5000, b'{"name": NaN}']


@pytest.mark.parametrize("facts", [*NONSENSE, *CHANGES], ids=lambda given: shorten(given, 40))
def test_a_folder_that_says_nonsense_is_not_taken_in(stored, facts):
    """It was read at every start, and no server started any more."""
    folder, id = stored
    file = folder / "models" / id / "facts.json"
    file.write_bytes(facts if isinstance(facts, bytes) else json.dumps(json.loads(file.read_text()) | facts).encode())
    store = Store(folder)
    assert store.models() == []
    assert (folder / "models" / id).is_dir(), "it is not ours to delete"
    store.close()


@pytest.mark.parametrize(
    "statement",
    [
        f"INSERT INTO models VALUES ('{ID}', 1.0, 'nonsense')",
        f"INSERT INTO models VALUES ('{ID}', 1.0, '[]')",
        "INSERT INTO models VALUES ('../../etc', 1.0, '{}')",
        f"INSERT INTO uploads VALUES ('{ID}', 1.0, 'a', 'a.csv', '[]')",
        f"INSERT INTO runs VALUES ('{ID}', 1.0, 'done', 'nonsense', NULL, '')",
        "DROP TABLE runs; CREATE TABLE runs (id TEXT)",
    ],
)
def test_a_base_with_nonsense_is_refused_at_the_start(stored, statement):
    folder, _ = stored
    in_base(folder, statement)
    with pytest.raises(InputError, match="must be a store of keytokens; it is damaged"):
        Store(folder)


def test_an_upload_that_names_a_file_elsewhere(tmp_path):
    """Its file may be deleted by its id: it must be one of ours."""
    victim = tmp_path / "precious.csv"
    victim.write_text("mine")
    facts = {"format": "csv", "rows": 1, "columns": ["a"], "text": None, "label": None, "preview": []}
    Store(tmp_path / "store").close()
    row = f"('{ID}', 1.0, 'a', '../../precious.csv', '{json.dumps(facts)}')"
    in_base(tmp_path / "store", f"INSERT INTO uploads VALUES {row}")
    store = Store(tmp_path / "store")
    for act in (store.upload_file, store.remove_upload):
        with pytest.raises(NotThere):
            act(ID)
    assert victim.read_text() == "mine"
    store.close()


def test_a_folder_among_the_uploads(tmp_path):
    (tmp_path / "uploads" / "mine").mkdir(parents=True)
    Store(tmp_path).close()
    assert (tmp_path / "uploads" / "mine").is_dir()


def test_letters_in_an_address_that_are_none(tmp_path):
    store = Store(tmp_path)
    app = create_app(store)
    for path in (b"?\xff", b"/nothing?name=\xc3\xa9"):
        assert in_a_loop(asked(app, "GET", path))[0] == 400
    store.close()


def test_a_download_that_nobody_reads_is_closed(tmp_path, model, monkeypatch):
    store = Store(tmp_path)
    id = take_in(store, model)
    opened, real = [], tempfile.SpooledTemporaryFile

    def noted(*arguments):
        opened.append(real(*arguments))
        return opened[-1]

    class Files:
        SpooledTemporaryFile = staticmethod(noted)

    monkeypatch.setattr(routes, "tempfile", Files)
    in_a_loop(asked(create_app(store), "GET", f"/api/models/{id}/download".encode()))
    assert len(opened) == 1
    assert opened[0].closed
    store.close()


def test_half_characters_in_a_request(server, trained):
    """A text is explained, whatever it holds; a name that is none is refused in one line."""
    answer = server.post(f"/api/models/{trained}/explain", {"texts": ["a great \ud800 film"]})
    assert answer.status == 200
    assert answer.json["explanations"][0]["text"] == "a great \ud800 film"
    for body in ({"\ud800": 1}, {"upload": ID, "title": "\ud800"}, {"upload": ID, "text": "\udfff"}):
        answer = server.post("/api/runs", body)
        assert answer.status in (400, 422)
        assert list(answer.json) == ["error"]
    assert server.get("/api/runs").status == 200


@pytest.mark.parametrize("number", ["Infinity", "-Infinity", "NaN", "1e999"])
@pytest.mark.parametrize("option", ["sink", "attention_penalty", "brevity"])
def test_numbers_that_are_none_in_a_request(server, option, number):
    """One was stored with its run, and then every list of runs failed."""
    body = f'{{"upload": "{ID}", "options": {{"{option}": {number}}}}}'
    answer = server.post("/api/runs", body.encode(), content_type="application/json")
    assert answer.status == 422
    assert f"options.{option}: input should be" in answer.json["error"]
    assert server.get("/api/runs").status == 200


def test_a_store_takes_no_number_that_it_could_not_read_again(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.add_run({"options": {"sink": float("inf")}})
    assert store.runs() == []
    store.close()


def test_a_folder_named_in_any_bytes(tmp_path, model):
    """Its name is shown in a list: half a character in it made every list fail."""
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/m\xff")
    shutil.copytree(model, odd)
    store = Store(tmp_path / "store")
    take_in(store, Path(odd))
    assert [record["name"] for record in store.models()] == ["m?"]
    store.close()


def test_a_store_that_cannot_be_written_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(Store, "_recover", full_base)
    with pytest.raises(OutputError, match="cannot be written: database or disk is full"):
        Store(tmp_path)
