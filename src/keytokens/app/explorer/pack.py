"""The containers that the page reads: facts as JSON and arrays as bytes, in one gzip stream.

    length of the header (uint32) | header (JSON, UTF-8) | arrays, one after the other

The header is {"facts": ..., "arrays": [{"name", "type", "shape"}]}. Arrays are little-endian and lie in planes, all
first bytes, then all second bytes, and so on: exponents are alike and compress. `static/unpack.js` is the way back.
"""

from __future__ import annotations

import gzip
import json
import re
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SURROGATE = re.compile("[\ud800-\udfff]")
_LEVEL = 6  # 9 takes fifteen times as long on a large model, for 4 % fewer bytes
_TYPES = {"f4", "f8", "u1", "u2", "u4", "i4"}


def pack(facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]] | None = None) -> bytes:
    """One container; the same bytes for the same contents, whenever it is made.

    >>> facts, arrays = unpack(pack({"a": 1}, {"x": np.arange(3, dtype="f4")}))
    >>> facts, arrays["x"].tolist()
    ({'a': 1}, [0.0, 1.0, 2.0])
    """
    entries, parts = [], []
    for name, array in (arrays or {}).items():
        kind = array.dtype.str[1:]
        assert kind in _TYPES, f"{name} is of type {array.dtype}"
        entries.append({"name": name, "type": kind, "shape": list(array.shape)})
        parts.append(_planes(array))
    header = _json({"facts": dict(facts), "arrays": entries})
    return gzip.compress(b"".join([struct.pack("<I", len(header)), header, *parts]), _LEVEL, mtime=0)


def unpack(content: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What `pack` was given."""
    plain = gzip.decompress(content)
    (size,) = struct.unpack_from("<I", plain)
    header, at, arrays = json.loads(plain[4 : 4 + size]), 4 + size, {}
    for entry in header["arrays"]:
        kind = np.dtype(f"<{entry['type']}")
        length = int(np.prod(entry["shape"]))
        planes = np.frombuffer(plain, np.uint8, length * kind.itemsize, at).reshape(kind.itemsize, length)
        arrays[entry["name"]] = np.ascontiguousarray(planes.T).view(kind).reshape(entry["shape"])
        at += length * kind.itemsize
    return header["facts"], arrays


def narrowest(array: NDArray[Any]) -> NDArray[Any]:
    """The same numbers in single precision if that loses nothing, else in double."""
    single = np.asarray(array, np.float32)
    return (
        single if np.array_equal(single.astype(np.float64), np.asarray(array, np.float64)) else np.asarray(array, "f8")
    )


def _planes(array: NDArray[Any]) -> bytes:
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1)
    return little.view(np.uint8).reshape(len(little), array.dtype.itemsize).T.tobytes()


def _json(record: Mapping[str, Any]) -> bytes:
    """Compact UTF-8; half of a surrogate pair, which UTF-8 cannot hold, is escaped."""
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text).encode("utf-8")
