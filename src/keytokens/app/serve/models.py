"""A model's folder in the store: how it is written, and models that come from elsewhere."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...base.files import sync_folder, write_new
from ...estimators.evaluation import stored
from ...estimators.saving import load, load_text_model
from ...estimators.text import KeyTokenClassifier
from ..explorer.page import explorer_parts
from .store import NotThere, Store, check_names


def write_page(folder: Path, clf: KeyTokenClassifier, name: str, parts: Mapping[str, bytes], **more: Any) -> None:
    """Put the containers of a page, and what the store says of the model, beside the model that is saved there."""
    for part, content in parts.items():
        write_new(folder / f"{part}.bin", content)
    facts = {
        "name": name,
        "texts": None,
        "tokens": len(clf.vocabulary_),
        "classes": clf.classes_.tolist(),
        "steps": clf.n_iter_,
        "status": clf.status_,
        "score": None,
        "bytes": sum(file.stat().st_size for file in (folder / "model").iterdir()),
        **more,
    }
    write_new(folder / "facts.json", json.dumps(facts).encode())
    sync_folder(folder)


def take_in(store: Store, model: Path) -> str:
    """Copy a model directory into the store, once: its id there is that of its contents."""
    clf = load_text_model("serve", model)
    check_names("labels", clf.classes_.tolist())
    id = hashlib.sha256((model / "model.json").read_bytes()).hexdigest()[:16]
    if not any(record["id"] == id for record in store.models()):
        name = model.resolve().name.encode("utf-8", "replace").decode()  # a folder may be named in any bytes
        folder = store.building_folder(id)
        shutil.rmtree(folder, ignore_errors=True)
        clf.save(folder / "model")
        score, about = stored(clf), clf.about_ or {}
        more = {"score": score and score.headline(), "texts": about.get("texts"), "trained": about.get("trained")}
        write_page(folder, clf, name, explorer_parts(clf, name)[0], **more)
        store.add_model(id)
    return id


class Shelf:
    """The models asked for last, in memory; safe for threads. One that left the store leaves the shelf too."""

    def __init__(self, store: Store, most: int) -> None:
        self._store = store
        self._most = most
        self._kept: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()
        self._loading = threading.Lock()  # one at a time: a crowd that asks for one model reads it once

    def model(self, id: str) -> Any:
        self._store.model(id)
        found = self._found(id)
        if found is None:
            with self._loading:
                found = self._found(id) or self._load(id)
        return found

    def forget(self, id: str) -> None:
        """After its row has gone."""
        with self._lock:
            self._kept.pop(id, None)

    def _found(self, id: str) -> Any:
        with self._lock:
            if id in self._kept:
                self._kept.move_to_end(id)
            return self._kept.get(id)

    def _load(self, id: str) -> Any:
        try:
            clf = load(self._store.model_folder(id) / "model")
            with self._lock:
                self._kept[id] = clf
                while len(self._kept) > self._most:
                    self._kept.popitem(last=False)
        finally:
            self._check(id)
        return clf

    def _check(self, id: str) -> None:
        """Removed while it was loaded: it must not stay, and the answer is that it is not there."""
        try:
            self._store.model(id)
        except NotThere:
            self.forget(id)
            raise
