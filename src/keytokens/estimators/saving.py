"""A model on disk: a directory with `model.json` and its arrays (safetensors): the numbers and, of a text classifier,
the words. Where the numbers lie on a grid (see `compression`) they are stored as whole ones, and both files deflated.

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

from ..base.checks import LARGEST
from ..base.errors import InputError, ModelError, refusal, shorten
from ..base.files import locked, plain_content, sync_folder, write_new, write_whole, writing
from ..base.threads import ordered_map
from ..model.features import FARTHEST
from ..text.vocabulary import Vocabulary
from .attention import Exact
from .bags import BagClassifier
from .compression import pack_numbers, pack_words, unpack_numbers, unpack_words
from .prior import Prior
from .teachers import TEACHERS
from .text import KeyTokenClassifier
from .unseen import Unseen

_FORMAT = 3
_AMOUNTS = ("mean_attention", "class_counts")
_ARRAYS = ("attention", "values", "intercept", "empty", "log_sink", "mean_attention", "class_counts")
_NAME = r"{}-[0-9a-f]{{16}}\.safetensors(\.zz)?"  # .zz: deflated
_OURS = re.compile(r"\.model\.json\.[0-9a-f]{12}\.tmp|" + _NAME.format("(numbers|words|scores)"))
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
    contents, record = _files_of(model)
    with writing(folder), locked(folder) as alone:
        written: list[Path] = []
        try:
            for name, content in contents.items():
                written.append(folder / name)
                write_new(written[-1], content)
            # alone: also what killed saves have left
            ours = [file.name for file in folder.iterdir() if _OURS.fullmatch(file.name) and file not in written]
            replaced = ours if alone else _named_files(folder)
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
    contents, record = _files_of(model)
    return len(record) + sum(map(len, contents.values()))


def _files_of(model: KeyTokenClassifier | BagClassifier) -> tuple[dict[str, bytes], bytes]:
    """The data files by name, and `model.json`."""
    kind = _KINDS[type(model).__name__]
    arrays = kind.arrays(model)
    contents, files = {}, {}
    for part, own in arrays.items():
        ending, content = _stored(own, part == "scores" or "grid" in arrays["numbers"])
        # a name of its own for every save, even of equal contents: no save ever deletes what another has written
        name = f"{part}-{secrets.token_hex(8)}{ending}"
        contents[name] = content
        files[part] = {"name": name, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    record = {
        "format": _FORMAT,
        "kind": type(model).__name__,
        "classes": model.classes_.tolist(),
        "options": {name: _plain(value) for name, value in model.get_params(deep=False).items()},
        "files": files,
        **kind.facts(model),
        "n_iter": int(model.n_iter_),
        "status": model.status_,
        "history": [float(value) for value in model.history_],
    }
    return contents, json.dumps(record, indent=1).encode()


def _named_files(folder: Path) -> list[str]:
    """The data files that the present `model.json` names, if there is one that can be read."""
    try:
        record = _record(folder)
    except ModelError:
        return []
    return [entry["name"] for entry in record["files"].values()]


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
    missing = None
    for _ in range(_ATTEMPTS):
        record = _record(folder)
        try:
            contents = {part: _read(folder, entry) for part, entry in record["files"].items()}
        except FileNotFoundError as error:
            missing = error  # replaced while we were reading: look again
        else:
            return _rebuild(folder, record, contents)
    assert missing is not None
    raise _unreadable(folder, f"its file {Path(missing.filename).name!r} is missing") from missing


def load_text_model(who: str, path: Path) -> KeyTokenClassifier:
    """A model of texts; one of bags is refused in the name of `who`."""
    found = load(path)
    if not isinstance(found, KeyTokenClassifier):
        raise InputError(f"{who}: {str(path)!r} must be a model of texts; saw a {type(found).__name__}.")
    return found


def _unreadable(folder: Path, why: str) -> ModelError:
    return ModelError(f"load: {os.fspath(folder)!r} is not a readable keytokens model: {why}. Save it again.")


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
    if type(seen) is not int or seen != _FORMAT:
        raise _unreadable(folder, f"format {shorten(seen)} is unknown, this version reads format {_FORMAT}")
    kind = record.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise _unreadable(folder, f"its kind {shorten(kind)} is unknown")
    files = record.get("files")
    if not isinstance(files, dict) or set(files) - set(_KINDS[kind].optional) != set(_KINDS[kind].parts):
        raise _unreadable(folder, "model.json does not name the files that a model of its kind has")
    for part, entry in files.items():
        if not isinstance(entry, dict) or not re.fullmatch(_NAME.format(part), str(entry.get("name"))):
            raise _unreadable(folder, f"model.json names no proper {part} file")


def _read(folder: Path, entry: dict[str, Any]) -> bytes:
    file, size = folder / entry["name"], entry.get("size")
    try:
        content = plain_content(file, size) if isinstance(size, int) else None
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unreadable(folder, f"{file.name}: {(error.strerror or str(error)).lower()}") from error
    if content is None or len(content) != size:
        raise _unreadable(folder, f"{file.name} does not have the size that model.json gives, or is no plain file")
    if hashlib.sha256(content).hexdigest() != entry.get("sha256"):
        raise _unreadable(folder, f"{file.name} is damaged (its checksum is wrong)")
    return content


def _rebuild(folder: Path, record: dict[str, Any], contents: dict[str, bytes]) -> Any:
    def read(part: str) -> dict[str, Any]:
        deflated, content = record["files"][part]["name"].endswith(".zz"), contents[part]
        return dict(load_arrays(_inflated(content) if deflated else content))

    try:
        options = {name: _option(value) for name, value in record["options"].items()}
        model = _KINDS[record["kind"]].rebuild(record, options, _classes(record["classes"]), read)
        if record.get("dropped") is not None:
            model.dropped_ = _dropped(record["dropped"])
        # how the training went: steps, the sentence at its end, and the objective after each step
        steps, status, history = record.get("n_iter", 0), record.get("status", ""), record.get("history", [])
        numbers = isinstance(history, list) and all(type(value) in (int, float) for value in history)
        if type(steps) is not int or not isinstance(status, str) or not numbers:
            raise ValueError("n_iter, status or history is of the wrong kind")
        model.n_iter_, model.status_, model.history_ = steps, status, np.array(history, np.float64)
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


def _dropped(given: Any) -> dict[str, Any]:
    """What a budget of memory has cost the model."""
    counts = isinstance(given, dict) and [given.get("tokens"), given.get("of")]
    if not counts or any(type(n) is not int or n < 1 for n in counts) or not isinstance(given.get("why"), str):
        raise ValueError("dropped must have two numbers of tokens and a reason")
    return {"tokens": given["tokens"], "of": given["of"], "why": given["why"]}


# ---- the data files


def _stored(arrays: dict[str, Any], deflate: bool) -> tuple[str, bytes]:
    """The end of the name of a data file, and its content: deflated, the size of the whole in eight bytes comes first.

    Beyond the bounds of `_inflated` it is stored as it is.
    """
    whole = save_arrays({name: np.ascontiguousarray(array) for name, array in arrays.items()})  # no scalars left
    if deflate:  # as suits numbers: small blocks, few short matches
        stream = zlib.compressobj(6, memLevel=7, strategy=zlib.Z_FILTERED)
        content = len(whole).to_bytes(8, "little") + stream.compress(whole) + stream.flush()
        if len(whole) <= _most_inflated(content):
            return ".safetensors.zz", content
    return ".safetensors", whole


def _most_inflated(content: bytes) -> int:
    return min(_LARGEST_INFLATED, 2**20 + _SWELLING * len(content))


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


# ---- the kinds of model


_Read = Callable[[str], dict[str, Any]]  # a part to its arrays


@dataclass(frozen=True)
class _Kind:
    """What differs between the kinds: the arrays in each data file, more facts for `model.json`, and the way back."""

    parts: tuple[str, ...]
    arrays: Callable[[Any], dict[str, dict[str, Any]]]
    facts: Callable[[Any], dict[str, Any]]
    rebuild: Callable[[dict[str, Any], dict[str, Any], Any, _Read], Any]
    optional: tuple[str, ...] = ()


def _text_arrays(model: KeyTokenClassifier) -> dict[str, dict[str, Any]]:
    """Two files, so that two processors may read them. What was fitted lies on no grid: only small models are asked."""
    numbers = {name: np.asarray(getattr(model, name + "_")) for name in _ARRAYS}
    packed = pack_numbers(numbers) if model._exact.on_grid else None
    scores = {} if model.unseen_ is None else {"scores": model.unseen_.to_arrays()}
    return {"numbers": packed or numbers, "words": pack_words(model.vocabulary_), **scores}


def _text_facts(model: KeyTokenClassifier) -> dict[str, Any]:
    facts: dict[str, Any] = {"tokens": len(model.vocabulary_), "dropped": model.dropped_, "about": model.about_}
    facts |= {"label_noise": model.label_noise_, "taught": model.taught_}
    return facts if model.unseen_ is None else {**facts, "scores": model.unseen_.facts()}


def _text_model(record: dict[str, Any], options: dict[str, Any], classes: Any, read: _Read) -> KeyTokenClassifier:
    model = KeyTokenClassifier(**options)
    model.check_options()

    def vocabulary() -> Vocabulary:
        arrays = read("words")
        if f"children_{_LONGEST + 1}" in arrays:
            raise ValueError(f"a token has more than {_LONGEST} words")
        return unpack_words(arrays)

    def numbers() -> tuple[dict[str, Any], bool]:
        arrays = read("numbers")
        return (unpack_numbers(arrays), True) if "grid" in arrays else (arrays, False)

    parts: list[Callable[[], Any]] = [numbers, vocabulary]
    (arrays, on_grid), model.vocabulary_ = ordered_map(lambda part: part(), parts, 2)
    _check_arrays(arrays, len(model.vocabulary_), len(classes))
    model.classes_ = classes
    for name in _ARRAYS:
        setattr(model, name + "_", arrays[name])
    model.log_sink_ = float(arrays["log_sink"][0])
    model._exact = Exact(model._present(), on_grid)
    if "scores" in record["files"]:
        model.unseen_ = Unseen.from_arrays(read("scores"), record["scores"], len(classes))
    model.about_, model.label_noise_ = _about(record.get("about")), float(record.get("label_noise", 0.0))
    model.taught_ = _taught(record.get("taught"))
    if not 0 <= model.label_noise_ < 1:
        raise ValueError("label_noise must be from 0 to below 1")
    return model


def _about(given: Any) -> dict[str, Any] | None:
    """What `fit` has noted of the training."""
    if given is None:
        return None
    texts, trained, columns = given["texts"], given["trained"], given["columns"]
    plain = type(texts) is int and isinstance(trained, str) and isinstance(columns, dict)
    if not plain or not all(isinstance(name, str | None) for name in columns.values()):
        raise ValueError("about must have a number of texts, a day and the names of columns")
    return {"texts": texts, "trained": trained, "columns": columns}


def _taught(given: Any) -> dict[str, Any] | None:
    """What it has learned of texts without labels."""
    if given is None:
        return None
    numbers = {name: given[name] for name in ("texts", "weight", "loss", "agreement") if name in given}
    if given["teacher"] not in TEACHERS or not all(type(n) in (int, float) for n in numbers.values()):
        raise ValueError("taught must name a teacher, and give numbers")
    return {"teacher": given["teacher"], **numbers}


def _bag_facts(model: BagClassifier) -> dict[str, Any]:
    names = getattr(model, "feature_names_in_", None)
    return {"feature_names": None if names is None else names.tolist()}


def _bag_model(record: dict[str, Any], options: dict[str, Any], classes: Any, read: _Read) -> BagClassifier:
    model = BagClassifier(**options)
    arrays = read("numbers")
    _check_bag_numbers(arrays)
    model.from_arrays(arrays, classes)
    names = record.get("feature_names")
    if names is not None:
        if len(names) != model.n_features_in_ or not all(isinstance(name, str) for name in names):
            raise ValueError("feature_names must have one string for each feature")
        model.feature_names_in_ = np.array(names, object)
    return model


_KINDS = {
    KeyTokenClassifier.__name__: _Kind(
        ("numbers", "words"),
        _text_arrays,
        _text_facts,
        _text_model,
        ("scores",),
    ),
    BagClassifier.__name__: _Kind(("numbers",), lambda model: {"numbers": model.to_arrays()}, _bag_facts, _bag_model),
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
        least = 5e-324 if name == "scale" else 0.0 if name in ("width", "limit") else -largest
        _check_within(name, array, least, largest)
