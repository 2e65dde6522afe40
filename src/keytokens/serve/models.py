"""A model's folder in the store: how it is written, and models that come from elsewhere."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..classifier import KeyTokenClassifier
from ..errors import InputError
from ..files import sync_folder, write_new
from ..persist import load
from ..report.explorer import explorer_parts
from .store import Store

__all__ = ["take_in", "write_model"]


def write_model(folder: Path, clf: KeyTokenClassifier, name: str, parts: Mapping[str, bytes], **more: Any) -> None:
    """The model, the containers of its page, and what the store says of it, on the disk when this returns."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    clf.save(folder / "model")
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
    clf = load(model)
    if not isinstance(clf, KeyTokenClassifier):
        raise InputError(f"serve: {str(model)!r} must be a model of texts; saw a {type(clf).__name__}.")
    id = hashlib.sha256((model / "model.json").read_bytes()).hexdigest()[:16]
    if not any(record["id"] == id for record in store.models()):
        name = model.resolve().name
        write_model(store.building_folder(id), clf, name, explorer_parts(clf.page_model(), name)[0])
        store.add_model(id)
    return id
