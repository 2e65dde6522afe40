"""Readers of tables, and of the texts that are in them."""

import bz2
import gzip
import io
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import keytokens as kt
from keytokens.app.serve.worker import facts_of
from keytokens.base.checks import check_labels
from keytokens.base.errors import OutputError
from keytokens.explain.terminal import explanation_text
from keytokens.io import labels_of, read_batches, read_table, texts_of, write_table
from keytokens.io.table import guess_columns

from .models import TEXTS
from .mutate import WORDS, mutated
from .watch import Broken

CSV = [
    b"text,label\na b c,1\nd e f,0\n\ng h i,1\n",
    b'\xef\xbb\xbfid;review;stars\r\n1;"a ""good"" film\r\nfor all";-5\r\n2;none;3\r\n',
    b"body|y\nx|--5\ny|1\n",
]
TSV = [
    b"text\tlabel\na b\tx\nc d\ty\n",
    b'sentence\tclass\n"a\tb"\t1\n',
    b"\xff\xfe" + 'text\tlabel\r\n"a \u0a0a\r\nb"\tx\r\nc d\ty\r\n'.encode("utf-16-le"),
]
JSONL = [
    b'{"text": "a b c", "label": 1}\n{"text": "d", "label": 0, "late": null}\n\n{"text": "e", "label": 1}\n',
    b'{"text": "\\ud83d\\ude00", "label": "x", "more": [1, {"a": [2.5, "b"]}]}\n{"text": "y", "label": "z"}\n',
]


def _parquet(columns: dict[str, list[Any]], **options: Any) -> bytes:
    import pyarrow
    from pyarrow import parquet

    whole = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), whole, **options)
    return whole.getvalue()


def parquet_seeds() -> list[bytes]:
    from datetime import UTC, date, datetime

    columns: dict[str, list[Any]] = {"text": ["a b c", "d e", "f", "a b c"], "label": [1, 0, 1, 0]}
    when = datetime(2020, 2, 2, tzinfo=UTC)
    odd = {"when": [when, None], "day": [date(2020, 1, 1)] * 2, "list": [[1, 2], None], "raw": [b"\xff", b""]}
    return [
        _parquet(columns, compression="none"),
        _parquet(columns, compression="snappy", use_dictionary=False),
        _parquet({**odd, "text": ["x", "y"], "struct": [{"a": 1}, {"a": None}]}, compression="gzip"),
        _parquet({"text": ["a"] * 50, "when": [when] * 50}, row_group_size=7, data_page_version="2.0"),
    ]


PACKING: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": lambda content: gzip.compress(content, 1, mtime=0),
    ".bz2": lambda content: bz2.compress(content, 1),
    ".xz": lambda content: lzma.compress(content, preset=0),
}


class _Tables:
    """Tables of one kind; packed ones are damaged before or after they were packed."""

    kind = ""
    packing = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = str(folder / f"table.{self.kind}{self.packing}")
        self.seeds = self.plain()
        self.packed = [PACKING[self.packing](seed) for seed in self.seeds]

    def plain(self) -> list[bytes]:
        return {"csv": CSV, "tsv": TSV, "jsonl": JSONL}[self.kind]

    def make(self, rng: Random, index: int) -> bytes:
        if not self.packing or rng.random() < 0.5:
            return PACKING[self.packing](mutated(rng, self.seeds))
        return mutated(rng, self.packed)

    def read(self, content: bytes) -> None:
        source = self.source
        with open(source, "wb") as file:
            file.write(content)
        table = read_table(source)
        if len(content) % 4 == 0:
            self._check_batches(source, repr(table.columns))
        if len(content) % 16 == 0:
            json.dumps(facts_of(source, self.kind, "a table"))
            self._written(table.columns, len(content) % 3)
        text, label = guess_columns(table, None, None)
        texts, labels = texts_of(table, text), labels_of(table, label or text)
        check_labels("fit", labels, len(texts))

    def _check_batches(self, source: str, expected: str) -> None:
        joined: dict[str, list[Any]] = {}
        for batch in read_batches(source, rows=2):
            for name, values in batch.columns.items():
                joined.setdefault(name, []).extend(values)
        if repr(joined) != expected:
            raise Broken("batches are not the table")

    def _written(self, columns: dict[str, list[Any]], turn: int) -> None:
        try:
            write_table(str(self.folder / f"out.{('csv', 'jsonl', 'parquet')[turn]}"), columns)
        except OutputError:
            return


def _reader(kind: str, packing: str) -> type[_Tables]:
    return type(f"{kind}{packing}", (_Tables,), {"kind": kind, "packing": packing})


class Parquet(_Tables):
    kind = "parquet"

    def plain(self) -> list[bytes]:
        return parquet_seeds()


class Texts:
    """Texts of any characters to a good model: a proof that can be shown."""

    def __init__(self, folder: Path) -> None:
        self.model = kt.KeyTokenClassifier(threads=1).fit(TEXTS[:4], ["pos", "pos", "neg", "neg"])
        self.seeds = [text.encode() for text in TEXTS] + WORDS

    def make(self, rng: Random, index: int) -> bytes:
        return b" ".join(mutated(rng, self.seeds) for _ in range(rng.choice([1, 2, 5])))[:4000]

    def read(self, content: bytes) -> None:
        for text in (
            content.decode("utf-8", "replace"),
            content.decode("utf-8", "surrogatepass" if _whole(content) else "replace"),
        ):
            explained = self.model.explain(text)
            json.dumps(explained.to_dict(words=False), allow_nan=False)
            page = explained._repr_html_()
            if "<script>alert" in page:
                raise Broken("a page has markup of the text")
            if not np.isfinite(self.model.predict_proba([text])).all():
                raise Broken("a probability that is none")
            shown = explanation_text(explained, width=80, colour=False)
            if any(ord(letter) < 32 and letter != "\n" for letter in shown) or "\x7f" in shown:
                raise Broken("the terminal gets control characters")


def _whole(content: bytes) -> bool:
    try:
        content.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


READERS: dict[str, Any] = {
    "csv": _reader("csv", ""),
    "tsv": _reader("tsv", ""),
    "jsonl": _reader("jsonl", ""),
    "csv.gz": _reader("csv", ".gz"),
    "csv.bz2": _reader("csv", ".bz2"),
    "jsonl.xz": _reader("jsonl", ".xz"),
    "parquet": Parquet,
    "parquet.gz": type("PackedParquet", (Parquet,), {"packing": ".gz"}),
    "texts": Texts,
}
