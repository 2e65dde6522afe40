"""What the server keeps: models, uploads and runs.

    DIR/store.sqlite          a row for each
    DIR/models/ID/            model/ (a model directory), facts.json, and the three containers of the explorer
    DIR/uploads/ID.csv        as uploaded

A model's folder is made under another name and renamed when it is complete, and only then is its row written. So a
folder under its own name is whole; one without a row (the server was killed in between) is taken in at the next start,
and what has another name is swept away.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...base.errors import DataError, InputError, KeyTokensError, OutputError
from ...base.files import plain_content, sync_folder, writing

_ID = re.compile(r"[0-9a-f]{16}\Z")
_FILE = re.compile(r"[0-9a-f]{16}\.[a-z]{1,12}(\.(gz|bz2|xz))?\Z")
_LARGEST_FACTS = 1 << 24  # bytes
_MODEL_FACTS: dict[str, tuple[type, ...]] = {
    "name": (str,),
    "classes": (list,),
    "tokens": (int,),
    "texts": (int, type(None)),
    "bytes": (int,),
    "score": (dict, type(None)),
}
_UPLOAD_FACTS: dict[str, tuple[type, ...]] = {
    "format": (str,),
    "rows": (int,),
    "columns": (list,),
    "text": (str, type(None)),
    "label": (str, type(None)),
    "preview": (list,),
}
_TABLES = """
CREATE TABLE IF NOT EXISTS models (id TEXT PRIMARY KEY, created REAL NOT NULL, facts TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS uploads (id TEXT PRIMARY KEY, created REAL NOT NULL, name TEXT NOT NULL, file TEXT NOT NULL,
                                    facts TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, created REAL NOT NULL, state TEXT NOT NULL, spec TEXT NOT NULL,
                                 model TEXT, message TEXT NOT NULL DEFAULT '');
"""
UNFINISHED = ("queued", "running")


class NotThere(KeyTokensError, LookupError):
    """Nothing of this kind has this id."""


def _unusable(folder: Path, error: Exception) -> KeyTokensError:
    """Why a store cannot be opened: another server has it, the disk refuses, or it is none."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return InputError(
            f"serve: `--store` must be a folder that no other server uses; saw {str(folder)!r}. "
            "End the other server, or name another folder."
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN):
        return OutputError(f"serve: the store {str(folder)!r} cannot be written: {reason(error)}.")
    return InputError(
        f"serve: {str(folder / 'store.sqlite')!r} must be a store of keytokens; it is damaged or another "
        "file. Move it away; models that are in the folder are taken in again."
    )


def new_id() -> str:
    return secrets.token_hex(8)


def reason(error: Exception) -> str:
    """Why the system refused, in its words and without a path."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(said.split()).lower() or type(error).__name__


def check_names(what: str, names: Iterable[Any]) -> None:
    """Labels and columns go to browsers as JSON; half a character (a lone surrogate) could not be written there."""
    for name in names:
        if isinstance(name, str) and any("\ud800" <= letter <= "\udfff" for letter in name):
            raise DataError(f"serve: {what} must be whole characters; saw {name[:80]!r}. Rename it.")


class Store:
    """One folder; safe for threads. A second server on the same folder is refused."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with writing(folder):
            for name in ("models", "uploads"):
                (folder / name).mkdir(parents=True, exist_ok=True)
            self._base = sqlite3.connect(folder / "store.sqlite", check_same_thread=False, timeout=1.0)
        self._lock = threading.Lock()
        self._base.row_factory = sqlite3.Row
        try:
            self._base.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._base.execute("PRAGMA synchronous=FULL")
            self._base.executescript(f"BEGIN IMMEDIATE; {_TABLES} COMMIT;")
            self._recover()
        except (sqlite3.Error, ValueError, TypeError, LookupError) as error:
            self._base.close()
            raise _unusable(folder, error) from error

    def close(self) -> None:
        with self._lock:
            self._base.close()

    # --- models ---

    def model_folder(self, id: str) -> Path:
        return self.folder / "models" / _checked(id, "model")

    def building_folder(self, id: str) -> Path:
        """Where a run builds what becomes the model's folder."""
        return self.folder / "models" / f".{_checked(id, 'model')}.building"

    def add_model(self, id: str) -> dict[str, Any]:
        """Make a built folder the model's own and write its row; if that fails, it is a built folder again."""
        building, target = self.building_folder(id), self.model_folder(id)
        built = not target.exists()
        if built:
            building.rename(target)
            sync_folder(target.parent)
        try:
            facts = _facts_of(target)
            self._write("INSERT OR REPLACE INTO models VALUES (?, ?, ?)", (id, time.time(), json.dumps(facts)))
        except BaseException:
            if built:
                target.rename(building)
            raise
        return self.model(id)

    def discard_building(self, id: str) -> None:
        shutil.rmtree(self.building_folder(id), ignore_errors=True)

    def models(self) -> list[dict[str, Any]]:
        """Newest first."""
        rows = self._read("SELECT * FROM models ORDER BY created DESC, id")
        return [_model_record(row) for row in rows]

    def model(self, id: str) -> dict[str, Any]:
        return _model_record(self._one("SELECT * FROM models WHERE id = ?", id, "model"))

    def remove_model(self, id: str) -> None:
        """The folder is renamed first: one without a row would come back. All is as before if the row cannot go."""
        folder = self.model_folder(id)
        self.model(id)
        away = folder.with_name(f".{id}.removed")
        with suppress(FileNotFoundError):
            folder.rename(away)
        try:
            self._write("DELETE FROM models WHERE id = ?", (id,))
        except BaseException:
            away.rename(folder)
            raise
        shutil.rmtree(away, ignore_errors=True)

    # --- uploads ---

    def upload_path(self, id: str, ending: str) -> Path:
        return self.folder / "uploads" / f"{_checked(id, 'upload')}{ending}"

    def add_upload(self, id: str, name: str, file: Path, facts: dict[str, Any]) -> dict[str, Any]:
        row = (id, time.time(), name, file.name, json.dumps(facts))
        self._write("INSERT INTO uploads VALUES (?, ?, ?, ?, ?)", row)
        return self.upload(id)

    def upload(self, id: str) -> dict[str, Any]:
        return _upload_record(self._one("SELECT * FROM uploads WHERE id = ?", id, "upload"))

    def upload_file(self, id: str) -> Path:
        name = str(self._one("SELECT * FROM uploads WHERE id = ?", id, "upload")["file"])
        if not _FILE.match(name):  # it may be deleted, so it must be one of ours
            raise NotThere(f"the upload {id!r} has no proper file.")
        return self.folder / "uploads" / name

    def uploads(self) -> list[dict[str, Any]]:
        return [self.upload(row["id"]) for row in self._read("SELECT id FROM uploads ORDER BY created DESC, id")]

    def remove_upload(self, id: str) -> None:
        file = self.upload_file(id)
        self._write("DELETE FROM uploads WHERE id = ?", (id,))
        file.unlink(missing_ok=True)

    # --- runs ---

    def add_run(self, spec: dict[str, Any]) -> str:
        id = new_id()
        row = (id, time.time(), "queued", json.dumps(spec, allow_nan=False))
        self._write("INSERT INTO runs (id, created, state, spec) VALUES (?, ?, ?, ?)", row)
        return id

    def set_run(self, id: str, state: str, message: str = "", model: str | None = None) -> None:
        self._write("UPDATE runs SET state = ?, message = ?, model = ? WHERE id = ?", (state, message, model, id))

    def run(self, id: str) -> dict[str, Any]:
        return _run_record(self._one("SELECT * FROM runs WHERE id = ?", id, "run"))

    def runs(self) -> list[dict[str, Any]]:
        return [_run_record(row) for row in self._read("SELECT * FROM runs ORDER BY created DESC, id")]

    # --- within ---

    def _recover(self) -> None:
        """After a start: what was running is over, what is whole is kept, what is half done is swept away."""
        marks = ", ".join("?" * len(UNFINISHED))
        self._write(
            f"UPDATE runs SET state = 'interrupted', message = 'the server ended' WHERE state IN ({marks})", UNFINISHED
        )
        known = self._known("models", _model_record)
        for folder in sorted((self.folder / "models").iterdir()):
            if folder.name.startswith("."):
                shutil.rmtree(folder, ignore_errors=True)
            elif _ID.match(folder.name) and folder.name not in known:
                with suppress(OSError, DataError):  # without facts it is none of ours
                    self.add_model(folder.name)
        for id in known:
            if not self.model_folder(id).is_dir():
                self._write("DELETE FROM models WHERE id = ?", (id,))
        self._known("uploads", _upload_record)
        self._known("runs", _run_record)
        files = {row["file"] for row in self._read("SELECT file FROM uploads")}
        for file in (self.folder / "uploads").iterdir():
            if file.name not in files:
                with suppress(OSError):
                    file.unlink()

    def _known(self, table: str, record: Callable[[sqlite3.Row], dict[str, Any]]) -> set[str]:
        """The ids of a table's rows; every one of them is read, so that a damaged base is known at the start."""
        rows = self._read(f"SELECT * FROM {table}")
        return {_checked(record(row)["id"], table) for row in rows}

    def _write(self, statement: str, values: tuple[Any, ...]) -> None:
        with self._lock, self._base:
            self._base.execute(statement, values)

    def _read(self, query: str, values: tuple[Any, ...] = ()) -> list[sqlite3.Row]:
        with self._lock:
            return self._base.execute(query, values).fetchall()

    def _one(self, query: str, id: str, noun: str) -> sqlite3.Row:
        rows = self._read(query, (_checked(id, noun),))
        if not rows:
            raise NotThere(f"no {noun} has the id {id!r}.")
        return rows[0]


def _checked(id: str, noun: str) -> str:
    """Ids become names of files: sixteen hexadecimal digits and nothing else."""
    if not isinstance(id, str) or not _ID.match(id):
        raise NotThere(f"no {noun} has the id {str(id)[:40]!r}.")
    return id


def _model_record(row: sqlite3.Row) -> dict[str, Any]:
    return {**_checked_facts(row["facts"], _MODEL_FACTS), "id": row["id"], "created": float(row["created"])}


def _upload_record(row: sqlite3.Row) -> dict[str, Any]:
    facts = _checked_facts(row["facts"], _UPLOAD_FACTS)
    return {**facts, "id": row["id"], "name": str(row["name"]), "created": float(row["created"])}


def _run_record(row: sqlite3.Row) -> dict[str, Any]:
    record = {key: row[key] for key in ("id", "created", "state", "model", "message")}
    return {**record, "spec": _checked_facts(row["spec"], {})}


def _facts_of(folder: Path) -> dict[str, Any]:
    """What a model's folder says of itself."""
    content = plain_content(folder / "facts.json", _LARGEST_FACTS)
    try:
        return _checked_facts((content or b"").decode("utf-8"), _MODEL_FACTS)
    except (ValueError, TypeError, LookupError, RecursionError):
        raise DataError(f"serve: {str(folder / 'facts.json')!r} must say what the model is; it is damaged.") from None


def _checked_facts(text: str, kinds: dict[str, tuple[type, ...]]) -> dict[str, Any]:
    """A JSON object, with what every record of its kind has; a ValueError or TypeError otherwise."""
    facts = json.loads(text, parse_constant=_refused)
    if not isinstance(facts, dict):
        raise TypeError("facts must have names")
    for name, types in kinds.items():
        if not isinstance(facts[name], types):
            raise TypeError(f"{name} is of the wrong kind")
    json.dumps(facts, allow_nan=False, ensure_ascii=False).encode("utf-8")  # as it will be sent
    return facts


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no number")
