"""Models on the disk that somebody changed, with or without mending the checksums."""

import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load, save

import keytokens as kt


def record_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "model.json").read_text())


def data_file(folder: Path, part: str) -> Path:
    return folder / record_of(folder)["files"][part]["name"]


def forge(folder: Path, part: str, content: bytes) -> None:
    """Another data file under a record that vouches for it."""
    record = record_of(folder)
    data_file(folder, part).write_bytes(content)
    record["files"][part] |= {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (folder / "model.json").write_text(json.dumps(record))


def packed(content: bytes, size: int | None = None) -> bytes:
    """A deflated file, with the size that it declares."""
    return (len(content) if size is None else size).to_bytes(8, "little") + zlib.compress(content)


def arrays_of(folder: Path, part: str) -> dict[str, Any]:
    content = data_file(folder, part).read_bytes()
    return load(zlib.decompress(content[8:]) if data_file(folder, part).suffix == ".zz" else content)


def forge_arrays(folder: Path, part: str, arrays: dict[str, Any]) -> None:
    """Other arrays, packed as these are."""
    content = save(arrays)
    forge(folder, part, packed(content) if data_file(folder, part).suffix == ".zz" else content)


def refused(folder: Path, why: str = "is not a readable keytokens model") -> None:
    """In one line, which says why."""
    with pytest.raises(kt.ModelError) as error:
        kt.load(folder)
    assert str(error.value).isprintable()
    assert why in str(error.value)
