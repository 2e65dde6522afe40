"""The store keeps what is whole and sweeps away what is half done, whenever the server was killed."""

import pytest

from keytokens.app.serve.models import take_in
from keytokens.app.serve.store import NotThere, Store, new_id
from keytokens.base.errors import InputError


def test_a_model_is_taken_in_once(tmp_path, model):
    store = Store(tmp_path)
    first = take_in(store, model)
    assert take_in(store, model) == first
    assert [record["name"] for record in store.models()] == ["reviews"]
    assert store.model(first)["classes"] == ["neg", "pos"]


def test_models_survive_a_restart(tmp_path, model):
    store = Store(tmp_path)
    id = take_in(store, model)
    store.close()
    again = Store(tmp_path)
    assert [record["id"] for record in again.models()] == [id]


def test_killed_between_folder_and_row(tmp_path, model):
    """A folder under its own name is whole: it is taken in at the next start."""
    store = Store(tmp_path)
    id = take_in(store, model)
    store._write("DELETE FROM models WHERE id = ?", (id,))
    store.close()
    assert [record["id"] for record in Store(tmp_path).models()] == [id]


def test_killed_while_building(tmp_path, model):
    store = Store(tmp_path)
    half = store.building_folder(new_id())
    half.mkdir()
    (half / "facts.json").write_text("{}")
    loose = store.upload_path(new_id(), ".csv")
    loose.write_text("text,label\n")
    run = store.add_run({"title": "mine"})
    store.set_run(run, "running")
    store.close()
    again = Store(tmp_path)
    assert again.models() == []
    assert not half.exists()
    assert not loose.exists()
    assert again.run(run)["state"] == "interrupted"


def test_a_row_without_its_folder_goes(tmp_path, model):
    store = Store(tmp_path)
    id = take_in(store, model)
    store.close()
    store.model_folder(id).rename(tmp_path / "elsewhere")
    assert Store(tmp_path).models() == []


def test_removing(tmp_path, model):
    store = Store(tmp_path)
    id = take_in(store, model)
    store.remove_model(id)
    assert store.models() == []
    assert list((tmp_path / "models").iterdir()) == []
    with pytest.raises(NotThere, match="no model has the id"):
        store.remove_model(id)


@pytest.mark.parametrize("id", ["", "..", "../models", "x" * 16, "0" * 15, "0" * 17, "0" * 16 + "\n"])
def test_ids_are_never_paths(tmp_path, id):
    store = Store(tmp_path)
    for ask in (store.model_folder, store.building_folder, store.model, store.upload, store.upload_file, store.run):
        with pytest.raises(NotThere):
            ask(id)


def test_two_servers_on_one_folder(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(InputError, match="no other server uses"):
        Store(tmp_path)
    store.close()
    Store(tmp_path).close()


def test_a_damaged_base(tmp_path):
    (tmp_path / "store.sqlite").write_bytes(b"not a base" * 1000)
    with pytest.raises(InputError, match="damaged or another file"):
        Store(tmp_path)


def test_only_models_of_texts(tmp_path):
    from keytokens import BagClassifier

    folder = tmp_path / "bags"
    BagClassifier().fit([[[0.0], [1.0]], [[2.0]], [[0.0], [3.0]], [[-1.0]]], [0, 1, 1, 0]).save(folder)
    with pytest.raises(InputError, match="must be a model of texts"):
        take_in(Store(tmp_path / "store"), folder)
