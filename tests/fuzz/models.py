"""Readers of model directories. What loads must also predict, explain and show itself."""

import hashlib
import json
import shutil
import zlib
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

import keytokens as kt
from keytokens.app.explorer.model import packed_model

from .mutate import mutated, mutated_json, touched
from .watch import Broken

TEXTS = ["a great film <b>", "great acting", "a dull plot", "dull, dull, dull", "an odd one", "odd and long"]
ODD = ["a great dull plot", "", "odd \0 acting"]
_NUMBERS = [0.0, -0.0, 1.0, -1.0, 1e-320, 1e9, 1e30, 1e100, 1e200, 1e308, -1e308, np.nan, np.inf, -np.inf]


def small_models() -> dict[str, Any]:
    two = kt.KeyTokenClassifier(threads=1).fit(TEXTS[:4], ["pos", "pos", "neg", "neg"])
    three = kt.KeyTokenClassifier(threads=1, counts="binary", prior=kt.Prior(sink=0)).fit(TEXTS, [1, 1, 0, 0, 2, 2])
    bags = [np.array(rows, float) for rows in ([[0, 1], [3, 0]], [[0, 1]], [[3, 0], [0, 1]], [[0, 1], [0, 1]])]
    bag = kt.BagClassifier(n_landmarks=3, max_iter=5).fit(bags, ["yes", "no", "yes", "no"])
    return {
        "two": two,
        "three": three,
        "pruned": kt.KeyTokenClassifier(threads=1, min_df=1).fit(TEXTS[:4], ["pos", "pos", "neg", "neg"]).pruned(12),
        "packed": two.compressed(10**6),
        "packed-3": three.compressed(10**6),
        "bag": bag,
    }


class _Models:
    """Small models of every kind and format on the disk, and one folder in which the damaged ones are put."""

    names: tuple[str, ...] = ("two", "three", "pruned", "packed", "packed-3", "bag")

    def __init__(self, folder: Path) -> None:
        self.target = folder / "target"
        self.files: dict[str, dict[str, bytes]] = {}
        self.records: dict[str, dict[str, Any]] = {}
        models = small_models()
        for name in self.names:
            models[name].save(folder / name)
            self.files[name] = {file.name: file.read_bytes() for file in sorted((folder / name).iterdir())}
            self.records[name] = json.loads(self.files[name].pop("model.json"))
            shutil.rmtree(folder / name)
        self.json = {name: json.dumps(record, indent=1).encode() for name, record in self.records.items()}
        self.target.mkdir()
        self.present: dict[str, str] = {}
        self.count = 0

    def make(self, rng: Random, index: int) -> bytes:
        """A folder in one line of JSON: its files by name, as text in latin-1."""
        turn, place = divmod(index, 64 * len(self.names))  # 64 of one model, then 64 of the next
        which, place = divmod(place, 64)
        name = self.names[which]
        files = self.damaged(rng, 64 * turn + place, name)
        return json.dumps({file: content.decode("latin-1") for file, content in files.items()}).encode()

    def damaged(self, rng: Random, index: int, name: str) -> dict[str, bytes]:
        raise NotImplementedError

    def read(self, content: bytes) -> None:
        files = json.loads(content)
        for file in self.present.keys() - files.keys():
            (self.target / file).unlink()
        for file, text in files.items():
            if self.present.get(file) != text:
                (self.target / file).write_bytes(text.encode("latin-1"))
        self.present = files
        self.count += 1
        use(kt.load(self.target), self.count)


def use(model: Any, turn: int) -> None:
    """What a model that was loaded must be good for: predictions always, the slower things in turn."""
    is_bag = isinstance(model, kt.BagClassifier)
    inputs = [np.ones((2, model.n_features_in_))] * 2 if is_bag else ODD
    P = model.predict_proba(inputs)
    if P.shape != (len(inputs), len(model.classes_)) or not np.allclose(P.sum(axis=1), 1):
        raise Broken(f"probabilities that are none: {P.tolist()}")
    json.dumps([model.n_iter_, model.status_, model.classes_.tolist()], allow_nan=False)
    if turn % 4:
        return
    explained = model.explain(inputs[0])
    json.dumps(explained.to_dict(), allow_nan=False)
    if turn % 16 == 0:
        page = explained._repr_html_()
        if "<script>alert" in page or "<img src=x" in page:
            raise Broken("a page has markup of the input")
        str(explained)
        if not is_bag:
            model.key_tokens(3)
            packed_model(model)


def sealed(record: dict[str, Any], files: dict[str, bytes]) -> dict[str, bytes]:
    """The files under a record that vouches for them: what only a forger would do."""
    record = json.loads(json.dumps(record))
    for entry in record["files"].values():
        content = files[entry["name"]]
        entry |= {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return {**files, "model.json": json.dumps(record).encode()}


class Bytes(_Models):
    """Every bit of every byte of a folder in turn, then every truncation, then other damage; nobody vouches for it."""

    def damaged(self, rng: Random, index: int, name: str) -> dict[str, bytes]:
        files = {**self.files[name], "model.json": self.json[name]}
        changed = touched(files, index)
        if changed:
            return files | changed
        chosen = rng.choice(list(files))
        if rng.random() < 0.1:
            del files[chosen]
            return files
        return {**files, chosen: mutated(rng, [files[chosen], *files.values()])}


class Record(_Models):
    """`model.json` with other values."""

    def damaged(self, rng: Random, index: int, name: str) -> dict[str, bytes]:
        return {**self.files[name], "model.json": mutated_json(rng, self.records[name])}


class Forged(_Models):
    """Data files that were changed by somebody who mended the checksums."""

    def damaged(self, rng: Random, index: int, name: str) -> dict[str, bytes]:
        files = dict(self.files[name])
        chosen = rng.choice(list(files))
        content = files[chosen]
        packed = chosen.endswith(".zz")
        if packed and rng.random() < 0.8:
            whole = self._other(rng, chosen, zlib.decompress(content[8:]))
            size = len(whole) if rng.random() < 0.9 else rng.choice([0, 1, 2**20, 2**40])
            files[chosen] = size.to_bytes(8, "little") + zlib.compress(whole, 1)
        else:
            files[chosen] = self._other(rng, chosen, content) if not packed else mutated(rng, [content])
        return sealed(self.records[name], files)

    def _other(self, rng: Random, file: str, content: bytes) -> bytes:
        if "safetensors" not in file or rng.random() < 0.3:
            return mutated(rng, [content])
        arrays = load_arrays(content)
        for _ in range(rng.choice([1, 1, 2])):
            name = rng.choice(sorted(arrays))
            arrays[name] = np.ascontiguousarray(_changed(rng, arrays[name]))
        if rng.random() < 0.1:
            del arrays[rng.choice(sorted(arrays))]
        return save_arrays(arrays)


def _changed(rng: Random, array: Any) -> Any:
    """An array with other numbers, of another shape or of another type."""
    turn = rng.random()
    if turn < 0.6 and array.size:
        array = array.copy()
        flat = array.reshape(-1)
        for at in rng.choices(range(flat.size), k=rng.choice([1, 1, 3, flat.size])):
            number = rng.choice(_NUMBERS) if array.dtype.kind == "f" else rng.randrange(128)
            with np.errstate(over="ignore"):
                flat[at] = number
        return array
    if turn < 0.8:
        return rng.choice([array[:-1], array[..., :-1], array[None], array[:0], np.repeat(array, 2, axis=-1), array.T])
    with np.errstate(all="ignore"):
        return array.astype(rng.choice(["f2", "f4", "f8", "i1", "i4", "u1", "u8", "?"]))


READERS = {"model-bytes": Bytes, "model-record": Record, "model-forged": Forged}
