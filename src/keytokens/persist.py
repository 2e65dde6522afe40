"""A model on disk: a directory with `model.json`, its arrays (safetensors) and, of a text classifier, its vocabulary
(text, one token a line).

`model.json` is the commit point: it names the data files with size and SHA-256. Saving writes the data files under
new names, replaces `model.json` in one instant, then deletes the files that the replaced one named. So at every moment
the old or the new model loads, also with several writers. Loading runs no code and refuses what it does not know.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from .bags import BagClassifier
from .classifier import KeyTokenClassifier, frozen
from .errors import InputError, ModelError
from .files import sync_folder, write_new, write_whole, writing
from .text import Vocabulary

__all__ = ["FORMAT", "load", "save"]

FORMAT = 1
_ARRAYS = ("attention", "values", "intercept", "empty", "log_sink", "mean_attention", "class_counts")
_NAMES = {
    "arrays": re.compile(r"arrays-[0-9a-f]{16}\.safetensors"),
    "vocabulary": re.compile(r"vocabulary-[0-9a-f]{16}\.txt"),
}
_ENDINGS = {"arrays": "arrays-{}.safetensors", "vocabulary": "vocabulary-{}.txt"}
_LARGEST_JSON = 64 * 2**20
_ATTEMPTS = 20  # to read a model that others keep replacing


def save(model: KeyTokenClassifier | BagClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a directory; an earlier model there is replaced in one instant."""
    folder = Path(path)
    kind = _KINDS[type(model).__name__]
    contents, facts = kind.contents(model), kind.facts(model)
    # a name of its own for every save, even of equal contents: no save ever deletes what another has written
    salt = secrets.token_bytes(8)
    names = {part: _ENDINGS[part].format(_digest(content + salt)[:16]) for part, content in contents.items()}
    record = {
        "format": FORMAT,
        "kind": type(model).__name__,
        "classes": model.classes_.tolist(),
        "options": {name: _plain(value) for name, value in model.get_params(deep=False).items()},
        "files": {
            part: {"name": names[part], "size": len(content), "sha256": _digest(content)}
            for part, content in contents.items()
        },
        **facts,
        "n_iter": int(model.n_iter_),
        "status": model.status_,
        "history": [float(value) for value in model.history_],
    }
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        written: list[Path] = []
        try:
            for part, content in contents.items():
                written.append(folder / names[part])
                write_new(written[-1], content)
            replaced = _named_files(folder)
            write_whole(folder / "model.json", json.dumps(record, indent=1).encode())
        except BaseException:
            present = _named_files(folder)  # an interrupt may come just after the new model took its place
            for file in written:
                if file.name not in present:
                    with suppress(OSError):
                        file.unlink()
            raise
        for name in replaced:
            with suppress(OSError):
                (folder / name).unlink()
        sync_folder(folder)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _named_files(folder: Path) -> list[str]:
    """The data files that the present `model.json` names, if there is one that can be read."""
    try:
        return [entry["name"] for entry in _record(folder)["files"].values()]
    except ModelError:
        return []


def _plain(value: Any) -> Any:
    """An option as JSON; a source of random numbers is not kept."""
    if isinstance(value, dict):
        return {"pairs": [[_plain(k), _plain(v)] for k, v in value.items()]}
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        return value.item()
    return value if value is None or isinstance(value, (str, int, float, bool)) else None


def _option(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, dict):
        return dict(value["pairs"])
    return value


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` has written: a `KeyTokenClassifier` or a `BagClassifier`, as it was saved."""
    folder = Path(path)
    for attempt in range(_ATTEMPTS):
        record = _record(folder)
        try:
            contents = {part: _read(folder, part, record["files"][part]) for part in _KINDS[record["kind"]].parts}
        except FileNotFoundError as error:
            if attempt + 1 < _ATTEMPTS:
                continue  # replaced while we were reading: look again
            raise _unreadable(folder, f"its file {Path(error.filename).name!r} is missing") from error
        return _rebuild(folder, record, contents)
    raise AssertionError("unreachable")


def _unreadable(folder: Path, why: str) -> ModelError:
    return ModelError(f"load: {os.fspath(folder)!r} is not a readable keytokens model: {why}. Cure: save it again.")


def _record(folder: Path) -> dict[str, Any]:
    file = folder / "model.json"
    try:
        if file.stat().st_size > _LARGEST_JSON:
            raise _unreadable(folder, "model.json is far too large")
        record = json.loads(file.read_bytes())
    except FileNotFoundError:
        if not folder.exists():
            raise ModelError(f"load: there is no model at {os.fspath(folder)!r}: no such directory.") from None
        raise _unreadable(folder, "model.json is missing") from None
    except OSError as error:
        raise _unreadable(folder, (error.strerror or str(error)).lower()) from error
    except (ValueError, RecursionError):
        raise _unreadable(folder, "model.json is not valid JSON") from None
    _check_record(folder, record)
    return dict(record)


def _check_record(folder: Path, record: Any) -> None:
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        seen = record.get("format") if isinstance(record, dict) else type(record).__name__
        raise _unreadable(folder, f"format {seen!r} is unknown, this version reads format {FORMAT}")
    kind = record.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise _unreadable(folder, f"its kind {kind!r} is unknown")
    files = record.get("files")
    for part in _KINDS[kind].parts:
        entry = files.get(part) if isinstance(files, dict) else None
        if not isinstance(entry, dict) or not _NAMES[part].fullmatch(str(entry.get("name"))):
            raise _unreadable(folder, f"model.json names no proper {part} file")


def _read(folder: Path, part: str, entry: dict[str, Any]) -> bytes:
    file = folder / entry["name"]
    try:
        if file.is_symlink() or file.stat().st_size != entry.get("size"):
            raise _unreadable(folder, f"{file.name} does not have the size that model.json gives")
        content = file.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unreadable(folder, f"{file.name}: {(error.strerror or str(error)).lower()}") from error
    if _digest(content) != entry.get("sha256"):
        raise _unreadable(folder, f"{file.name} is damaged (its checksum is wrong)")
    return content


def _rebuild(folder: Path, record: dict[str, Any], contents: dict[str, bytes]) -> Any:
    try:
        classes = np.array(record["classes"])
        if len(classes) < 2 or not np.array_equal(np.unique(classes), classes):
            raise ValueError("classes must be two or more, sorted, each once")
        options = {name: _option(value) for name, value in record["options"].items()}
        model = _KINDS[record["kind"]].rebuild(record, options, classes, contents)
    except (SafetensorError, ValueError, TypeError, KeyError, AttributeError, InputError) as error:
        raise _unreadable(folder, f"its contents do not fit together ({error})") from error
    model.n_iter_, model.status_ = record.get("n_iter", 0), record.get("status", "")
    model.history_ = np.array(record.get("history", []), np.float64)
    return model


# ---- the kinds of model


@dataclass(frozen=True)
class _Kind:
    """What differs between the kinds: the data files, more facts for `model.json`, and the way back."""

    parts: tuple[str, ...]
    contents: Callable[[Any], dict[str, bytes]]
    facts: Callable[[Any], dict[str, Any]]
    rebuild: Callable[[dict[str, Any], dict[str, Any], Any, dict[str, bytes]], Any]


def _text_contents(model: KeyTokenClassifier) -> dict[str, bytes]:
    arrays = {name: np.atleast_1d(np.ascontiguousarray(getattr(model, name + "_"))) for name in _ARRAYS}
    vocabulary = "".join(token + "\n" for token in model.vocabulary_.tokens).encode("utf-8")
    return {"arrays": save_arrays(arrays), "vocabulary": vocabulary}


def _text_facts(model: KeyTokenClassifier) -> dict[str, Any]:
    return {"tokens": len(model.vocabulary_)}


def _text_model(
    record: dict[str, Any], options: dict[str, Any], classes: Any, contents: dict[str, bytes]
) -> KeyTokenClassifier:
    arrays = load_arrays(contents["arrays"])
    tokens = contents["vocabulary"].decode("utf-8").split("\n")[:-1]
    model = KeyTokenClassifier(**options)
    model.check_options()
    vocabulary = Vocabulary.from_tokens(tokens)
    if len(vocabulary) != len(tokens):
        raise ValueError("the vocabulary names a token twice")
    _check_arrays(arrays, len(tokens), len(classes))
    model.classes_ = classes
    for name in _ARRAYS:
        setattr(model, name + "_", arrays[name])
    model.log_sink_ = float(arrays["log_sink"][0])
    model._theta = frozen(model._present())
    model.vocabulary_ = vocabulary
    return model


def _bag_contents(model: BagClassifier) -> dict[str, bytes]:
    arrays = {name: np.ascontiguousarray(array) for name, array in model.to_arrays().items()}
    return {"arrays": save_arrays(arrays)}


def _bag_facts(model: BagClassifier) -> dict[str, Any]:
    names = getattr(model, "feature_names_in_", None)
    return {"feature_names": None if names is None else names.tolist()}


def _bag_model(
    record: dict[str, Any], options: dict[str, Any], classes: Any, contents: dict[str, bytes]
) -> BagClassifier:
    model = BagClassifier(**options)
    model.from_arrays(load_arrays(contents["arrays"]), classes)
    names = record.get("feature_names")
    if names is not None:
        if len(names) != model.n_features_in_:
            raise ValueError("feature_names must have one entry for each feature")
        model.feature_names_in_ = np.array(names, object)
    return model


_KINDS = {
    KeyTokenClassifier.__name__: _Kind(("arrays", "vocabulary"), _text_contents, _text_facts, _text_model),
    BagClassifier.__name__: _Kind(("arrays",), _bag_contents, _bag_facts, _bag_model),
}


def _check_arrays(arrays: dict[str, Any], V: int, K: int) -> None:
    m = 1 if K == 2 else K
    shapes = {
        "attention": (V,),
        "values": (m, V),
        "intercept": (m,),
        "empty": (m,),
        "log_sink": (1,),
        "mean_attention": (V,),
        "class_counts": (K, V),
    }
    if set(arrays) != set(shapes):
        raise ValueError("arrays are missing")
    for name, shape in shapes.items():
        array = arrays[name]
        if array.shape != shape or array.dtype.kind != "f":
            raise ValueError(f"{name} has the wrong shape or type")
        if name != "log_sink" and not np.isfinite(array).all():
            raise ValueError(f"{name} is not finite")
