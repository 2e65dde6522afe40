"""A model on disk: a directory with `model.json`, its arrays (safetensors) and, of a text classifier, its vocabulary
(text, one token a line). A text classifier whose numbers lie on a grid (see `compression`) has two deflated files
instead, with whole numbers: format 2.

`model.json` is the commit point: it names the data files with size and SHA-256. Saving writes the data files under
new names, replaces `model.json` in one instant, then deletes the other files of models. So at every moment the old or
the new model loads. Writers take turns. Where the system has no locks, only what the replaced `model.json` named is
deleted: the rest may be what another writer is about to name. Loading runs no code and refuses what it does not know.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
import zlib
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
from .bags.features import FARTHEST
from .classifier import Exact, KeyTokenClassifier, Prior
from .compression import NUMBERS, pack, unpack_numbers, unpack_vocabulary
from .core.bags import LARGEST
from .errors import InputError, ModelError, refusal, shorten
from .files import locked, plain_content, sync_folder, write_new, write_whole, writing
from .parallel import ordered_map
from .text import Vocabulary

__all__ = ["FORMATS", "load", "load_text_model", "save", "size_on_disk"]

FORMATS = (1, 2)
_AMOUNTS = ("mean_attention", "class_counts")
_ARRAYS = ("attention", "values", "intercept", "empty", "log_sink", "mean_attention", "class_counts")
_NAMES = {
    "arrays": re.compile(r"arrays-[0-9a-f]{16}\.safetensors"),
    "vocabulary": re.compile(r"vocabulary-[0-9a-f]{16}\.txt"),
    "numbers": re.compile(r"numbers-[0-9a-f]{16}\.safetensors\.zz"),
    "words": re.compile(r"words-[0-9a-f]{16}\.safetensors\.zz"),
}
_ENDINGS = {
    "arrays": "arrays-{}.safetensors",
    "vocabulary": "vocabulary-{}.txt",
    "numbers": "numbers-{}.safetensors.zz",
    "words": "words-{}.safetensors.zz",
}
_OURS = re.compile("|".join([r"\.model\.json\.[0-9a-f]{12}\.tmp", *(name.pattern for name in _NAMES.values())]))
_LARGEST_JSON = 64 * 2**20
_LARGEST_INFLATED = 256 * 2**20
_SWELLING = 200  # times: no more is inflated from a file, beside the first megabyte
_LARGEST_NUMBER = 1e100  # so that products and sums stay finite
_LONGEST = 1000  # words of a token
_ATTEMPTS = 20  # to read a model that others keep replacing


def save(model: KeyTokenClassifier | BagClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a directory; an earlier model there is replaced in one instant."""
    folder = Path(path)
    if isinstance(model, KeyTokenClassifier) and model.vocabulary_.order > _LONGEST:
        raise refusal("save", "ngrams", f"be at most {_LONGEST} words, to be saved", model.ngrams)
    names, contents, record = _files_of(model)
    with writing(folder), locked(folder) as alone:
        written: list[Path] = []
        try:
            for part, content in contents.items():
                written.append(folder / names[part])
                write_new(written[-1], content)
            replaced = _others(folder, written) if alone else _named_files(folder)
            write_whole(folder / "model.json", record)
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


def size_on_disk(model: KeyTokenClassifier | BagClassifier) -> int:
    """How many bytes `save` would write."""
    _, contents, record = _files_of(model)
    return len(record) + sum(map(len, contents.values()))


def _files_of(model: KeyTokenClassifier | BagClassifier) -> tuple[dict[str, str], dict[str, bytes], bytes]:
    """The names and contents of the data files, by part, and `model.json`."""
    number, kind, contents = next(
        (number, kind, contents)
        for number, kind in _KINDS[type(model).__name__].items()
        if (contents := kind.contents(model)) is not None
    )
    # a name of its own for every save, even of equal contents: no save ever deletes what another has written
    salt = secrets.token_bytes(8)
    names = {part: _ENDINGS[part].format(_digest(content + salt)[:16]) for part, content in contents.items()}
    record = {
        "format": number,
        "kind": type(model).__name__,
        "classes": model.classes_.tolist(),
        "options": {name: _plain(value) for name, value in model.get_params(deep=False).items()},
        "files": {
            part: {"name": names[part], "size": len(content), "sha256": _digest(content)}
            for part, content in contents.items()
        },
        **kind.facts(model),
        "n_iter": int(model.n_iter_),
        "status": model.status_,
        "history": [float(value) for value in model.history_],
    }
    return names, contents, json.dumps(record, indent=1).encode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _named_files(folder: Path) -> list[str]:
    """The data files that the present `model.json` names, if there is one that can be read."""
    try:
        record = _record(folder)
    except ModelError:
        return []
    return [record["files"][part]["name"] for part in _kind(record).parts]


def _others(folder: Path, written: list[Path]) -> list[str]:
    """All files of models but these: those of the model that is replaced, and what killed saves have left."""
    return [file.name for file in folder.iterdir() if _OURS.fullmatch(file.name) and file not in written]


def _plain(value: Any) -> Any:
    """An option as JSON; a source of random numbers is not kept."""
    if isinstance(value, Prior):
        return {name: _plain(v) for name, v in value.get_params().items()}
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
        return dict(value["pairs"]) if "pairs" in value else Prior(**value)
    return value


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` has written: a `KeyTokenClassifier` or a `BagClassifier`, as it was saved.

    >>> import tempfile
    >>> import keytokens as kt
    >>> clf = kt.KeyTokenClassifier().fit(["a great film", "a dull plot"] * 4, ["good", "bad"] * 4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     clf.save(folder)
    ...     again = load(folder)
    >>> bool((again.predict_proba(["great"]) == clf.predict_proba(["great"])).all())
    True
    """
    folder = Path(path)
    for attempt in range(_ATTEMPTS):
        record = _record(folder)
        try:
            contents = {part: _read(folder, part, record["files"][part]) for part in _kind(record).parts}
        except FileNotFoundError as error:
            if attempt + 1 < _ATTEMPTS:
                continue  # replaced while we were reading: look again
            raise _unreadable(folder, f"its file {Path(error.filename).name!r} is missing") from error
        return _rebuild(folder, record, contents)
    raise AssertionError("unreachable")


def load_text_model(who: str, path: Path) -> KeyTokenClassifier:
    """A model of texts; one of bags is refused in the name of `who`."""
    found = load(path)
    if not isinstance(found, KeyTokenClassifier):
        raise InputError(f"{who}: {str(path)!r} must be a model of texts; saw a {type(found).__name__}.")
    return found


def _unreadable(folder: Path, why: str) -> ModelError:
    return ModelError(f"load: {os.fspath(folder)!r} is not a readable keytokens model: {why}. Cure: save it again.")


def _record(folder: Path) -> dict[str, Any]:
    try:
        content = plain_content(folder / "model.json", _LARGEST_JSON)
        if content is None:
            raise _unreadable(folder, "model.json is no plain file, or far too large")
        record = json.loads(content, object_pairs_hook=_each_once, parse_float=_finite, parse_constant=_finite)
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


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a name is there twice")
    return record


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number is not finite")
    return number


def _check_record(folder: Path, record: Any) -> None:
    seen = record.get("format") if isinstance(record, dict) else type(record).__name__
    if not isinstance(seen, int) or seen not in FORMATS:
        known = " and ".join(map(str, FORMATS))
        raise _unreadable(folder, f"format {shorten(seen)} is unknown, this version reads formats {known}")
    kind = record.get("kind")
    if not isinstance(kind, str) or seen not in _KINDS.get(kind, ()):
        raise _unreadable(folder, f"its kind {shorten(kind)} is unknown in format {seen}")
    files, parts = record.get("files"), _kind(record).parts
    for part in parts:
        entry = files.get(part) if isinstance(files, dict) else None
        if not isinstance(entry, dict) or not _NAMES[part].fullmatch(str(entry.get("name"))):
            raise _unreadable(folder, f"model.json names no proper {part} file")
    if set(files) != set(parts):
        raise _unreadable(folder, "model.json names files that no model of its kind has")


def _read(folder: Path, part: str, entry: dict[str, Any]) -> bytes:
    file, size = folder / entry["name"], entry.get("size")
    try:
        content = plain_content(file, size) if isinstance(size, int) else None
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unreadable(folder, f"{file.name}: {(error.strerror or str(error)).lower()}") from error
    if content is None or len(content) != size:
        raise _unreadable(folder, f"{file.name} does not have the size that model.json gives, or is no plain file")
    if _digest(content) != entry.get("sha256"):
        raise _unreadable(folder, f"{file.name} is damaged (its checksum is wrong)")
    return content


def _rebuild(folder: Path, record: dict[str, Any], contents: dict[str, bytes]) -> Any:
    try:
        options = {name: _option(value) for name, value in record["options"].items()}
        model = _kind(record).rebuild(record, options, _classes(record["classes"]), contents)
        if record.get("dropped") is not None:
            model.dropped_ = _dropped(record["dropped"])
        model.n_iter_, model.status_, model.history_ = _course(record)
    except (SafetensorError, zlib.error, InputError, *_MISFITS) as error:
        raise _unreadable(folder, f"its contents do not fit together ({_said(error)})") from error
    return model


# what arises where something of another kind or size stands in the place of what was saved
_MISFITS = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError)


def _said(error: Exception) -> str:
    """In one short plain line: parts of the file may be in it, and must not speak to a terminal."""
    line = " ".join(str(error).split())
    line = line if len(line) <= 200 else line[:200] + "..."
    return line if line.isprintable() else ascii(line)


def _classes(given: Any) -> Any:
    classes = np.array(given)
    kinds = {type(each) for each in given}
    if len(classes) < 2 or not np.array_equal(np.unique(classes), classes):
        raise ValueError("classes must be two or more, sorted, each once")
    if len(kinds) != 1 or not kinds <= {str, int, bool, float} or classes.tolist() != given:
        raise ValueError("classes must be strings, numbers or booleans, all of one kind")
    return classes


def _course(record: dict[str, Any]) -> tuple[int, str, Any]:
    """How the training went: steps, the sentence at its end, and the objective after each step."""
    steps, status = record.get("n_iter", 0), record.get("status", "")
    history = record.get("history", [])
    numbers = isinstance(history, list) and all(type(value) in (int, float) for value in history)
    if type(steps) is not int or not isinstance(status, str) or not numbers:
        raise ValueError("n_iter, status or history is of the wrong kind")
    return steps, status, np.array(history, np.float64)


def _dropped(given: Any) -> dict[str, Any]:
    """What a budget of memory has cost the model."""
    counts = isinstance(given, dict) and [given.get("tokens"), given.get("of")]
    if not counts or any(type(n) is not int or n < 1 for n in counts) or not isinstance(given.get("why"), str):
        raise ValueError("dropped must have two numbers of tokens and a reason")
    return {"tokens": given["tokens"], "of": given["of"], "why": given["why"]}


# ---- the kinds of model


@dataclass(frozen=True)
class _Kind:
    """What differs between the kinds: the data files, more facts for `model.json`, and the way back."""

    parts: tuple[str, ...]
    contents: Callable[[Any], dict[str, bytes] | None]  # None: this format cannot hold the model
    facts: Callable[[Any], dict[str, Any]]
    rebuild: Callable[[dict[str, Any], dict[str, Any], Any, dict[str, bytes]], Any]


def _text_contents(model: KeyTokenClassifier) -> dict[str, bytes]:
    arrays = {name: np.atleast_1d(np.ascontiguousarray(getattr(model, name + "_"))) for name in _ARRAYS}
    vocabulary = "".join(token + "\n" for token in model.vocabulary_.tokens).encode("utf-8")
    return {"arrays": save_arrays(arrays), "vocabulary": vocabulary}


def _text_facts(model: KeyTokenClassifier) -> dict[str, Any]:
    return {"tokens": len(model.vocabulary_), "dropped": model.dropped_}


def _text_model(
    record: dict[str, Any], options: dict[str, Any], classes: Any, contents: dict[str, bytes]
) -> KeyTokenClassifier:
    arrays = load_arrays(contents["arrays"])
    text = contents["vocabulary"].decode("utf-8")
    tokens = text.split("\n")[:-1]
    if any(gap in f"\n{text}" for gap in ("\n\n", "\n ", " \n", "  ")):
        raise ValueError("the vocabulary has an empty word")
    longest = max(map(len, tokens), default=0)  # so many words take as many letters, and these are counted faster
    if longest > _LONGEST and any(token.count(" ") >= _LONGEST for token in tokens):
        raise ValueError(f"a token has more than {_LONGEST} words")
    vocabulary = Vocabulary.from_tokens(tokens)
    if len(vocabulary) != len(tokens):
        raise ValueError("the vocabulary names a token twice")
    return _text_model_of(vocabulary, arrays, options, classes)


def _text_model_of(
    vocabulary: Vocabulary, arrays: dict[str, Any], options: dict[str, Any], classes: Any
) -> KeyTokenClassifier:
    model = KeyTokenClassifier(**options)
    model.check_options()
    _check_arrays(arrays, int(np.count_nonzero(vocabulary.column >= 0)), len(classes))
    model.classes_ = classes
    for name in _ARRAYS:
        setattr(model, name + "_", arrays[name])
    model.log_sink_ = float(arrays["log_sink"][0])
    model._exact = Exact(model._present())
    model.vocabulary_ = vocabulary
    return model


def _packed_contents(model: KeyTokenClassifier) -> dict[str, bytes] | None:
    """Two files, so that two processors may inflate them; in each the arrays' size in eight bytes, then the arrays."""
    arrays = pack(model.token_model())
    if arrays is None:
        return None
    parts: dict[str, dict[str, Any]] = {"numbers": {}, "words": {}}
    for name, array in arrays.items():
        parts["numbers" if name in NUMBERS else "words"][name] = np.ascontiguousarray(array)
    wholes = {part: save_arrays(own) for part, own in parts.items()}
    if max(map(len, wholes.values())) > _LARGEST_INFLATED:
        return None
    packed = {part: len(whole).to_bytes(8, "little") + _deflated(whole) for part, whole in wholes.items()}
    return packed if all(len(wholes[part]) <= _most_inflated(content) for part, content in packed.items()) else None


def _most_inflated(content: bytes) -> int:
    return min(_LARGEST_INFLATED, 2**20 + _SWELLING * len(content))


def _deflated(whole: bytes) -> bytes:
    deflate = zlib.compressobj(6, memLevel=7, strategy=zlib.Z_FILTERED)  # for numbers: small blocks, few short matches
    return deflate.compress(whole) + deflate.flush()


def _packed_model(
    record: dict[str, Any], options: dict[str, Any], classes: Any, contents: dict[str, bytes]
) -> KeyTokenClassifier:
    def vocabulary() -> Vocabulary:
        arrays = load_arrays(_inflated(contents["words"]))
        if f"children_{_LONGEST + 1}" in arrays:
            raise ValueError(f"a token has more than {_LONGEST} words")
        return unpack_vocabulary(arrays)

    def numbers() -> dict[str, Any]:
        theta, mean_attention, class_counts = unpack_numbers(load_arrays(_inflated(contents["numbers"])))
        return {
            "attention": theta.a,
            "values": theta.B,
            "intercept": theta.c,
            "empty": theta.empty,
            "log_sink": np.array([theta.log_sink]),
            "mean_attention": mean_attention,
            "class_counts": class_counts,
        }

    parts: list[Callable[[], Any]] = [numbers, vocabulary]
    arrays, known = ordered_map(lambda part: part(), parts, 2)
    return _text_model_of(known, arrays, options, classes)


def _inflated(content: bytes) -> bytes:
    """What was deflated; its size is declared, judged before anything is inflated, and never exceeded."""
    size = int.from_bytes(content[:8], "little")
    if size > _most_inflated(content):
        raise ValueError("it would inflate to far too much")
    stream = zlib.decompressobj()
    whole = stream.decompress(content[8:], size + 1)
    if len(whole) != size or not stream.eof or stream.unused_data:
        raise ValueError("it does not inflate to the size that it declares")
    return whole


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
    arrays = load_arrays(contents["arrays"])
    _check_bag_numbers(arrays)
    model.from_arrays(arrays, classes)
    names = record.get("feature_names")
    if names is not None:
        if len(names) != model.n_features_in_ or not all(isinstance(name, str) for name in names):
            raise ValueError("feature_names must have one string for each feature")
        model.feature_names_in_ = np.array(names, object)
    return model


# by kind and format; of the formats that can hold a model, the first is written
_KINDS = {
    KeyTokenClassifier.__name__: {
        2: _Kind(("numbers", "words"), _packed_contents, _text_facts, _packed_model),
        1: _Kind(("arrays", "vocabulary"), _text_contents, _text_facts, _text_model),
    },
    BagClassifier.__name__: {1: _Kind(("arrays",), _bag_contents, _bag_facts, _bag_model)},
}


def _kind(record: dict[str, Any]) -> _Kind:
    return _KINDS[record["kind"]][record["format"]]


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
        least = -np.inf if name == "log_sink" else 0.0 if name in _AMOUNTS else -_LARGEST_NUMBER
        _check_within(name, array, least, _LARGEST_NUMBER)


def _check_within(name: str, array: Any, least: float, most: float) -> None:
    """In double precision, where these bounds are; what is no number is not within."""
    if array.size and not (least <= float(array.min()) and float(array.max()) <= most):
        raise ValueError(f"{name} is not finite, or out of range")


_LARGEST_OF_BAGS = {"mean": LARGEST, "scale": 2 * LARGEST, "landmarks": FARTHEST, "q": 1e50, "V": 1e50}


def _check_bag_numbers(arrays: dict[str, Any]) -> None:
    """Beyond what the shapes say: no division by zero, no overflow on the way to a score."""
    for name, array in arrays.items():
        largest = _LARGEST_OF_BAGS.get(name, _LARGEST_NUMBER)
        least = 5e-324 if name == "scale" else 0.0 if name == "width" else -largest
        _check_within(name, array, least, largest)
