"""Tables made by somebody who means harm: what was found, one row each (see docs/reliability.md)."""

import gzip
import io
import json
import lzma
import tracemalloc
import zlib
from collections.abc import Iterable
from datetime import UTC, datetime

import pytest

from keytokens import DataError, OutputError
from keytokens.io import labels_of, read_batches, read_table, reading, sources, write_table
from keytokens.io import parquet as parquet_reading
from keytokens.io.table import guess_columns

from .both import put, refused

MEGABYTE = 1 << 20


def deflated(pieces: Iterable[bytes]) -> bytes:
    deflate = zlib.compressobj(9, wbits=31)
    return b"".join([*map(deflate.compress, pieces), deflate.flush()])


def greedy_xz(exponent: int) -> bytes:
    """A small .xz file whose header asks for a dictionary of 2^exponent bytes, with the right checksum."""
    packed = bytearray(lzma.compress(b"text,label\na,b\n", preset=0))
    size = (packed[12] + 1) * 4
    assert packed[14:16] == b"\x21\x01"
    packed[16] = 2 * (exponent - 12)
    packed[12 + size - 4 : 12 + size] = zlib.crc32(packed[12 : 12 + size - 4]).to_bytes(4, "little")
    return bytes(packed)


PACKED = b"text,label\n" + b"a b,c\n" * 9_000
PARTS = [lzma.compress(PACKED[at : at + 17_000]) for at in range(0, len(PACKED), 17_000)]
REFUSED = {
    "a quote that is never closed": ("csv", 'text,label\n"a' + "b\n" * MEGABYTE, "CSV: field larger than field limit"),
    # it was gathered in memory and looked through again from the beginning with every piece
    "white space without end": ("csv.gz", deflated([b" " * MEGABYTE] * 40), "it begins with 1,048,576 blank bytes"),
    "rows without a field": ("jsonl", "{}\n" * 5000, "the first 1,000 rows have no field at all"),
    # a million rows with a million fields are a million million cells, nearly all of them holes
    "a field for each row": (
        "jsonl",
        "".join(f'{{"k{i}": 1}}\n' for i in range(900)),
        "a table of .* cells must have a value in one of 100",
    ),
    # each name was counted among all: the square of the header's length
    "many columns, the last of them twice": (
        "csv",
        ",".join(f"c{min(i, 99_999)}" for i in range(100_001)) + "\n",
        "column names must differ; saw 'c99999' twice",
    ),
    "lists in lists": ("jsonl", f'{{"text": {"[" * 60 + "]" * 60}}}\n', "line 1: values may lie 50 deep"),
    "objects in objects": ("jsonl", '{"a":' * 60 + "1" + "}" * 60 + "\n", "line 1: values may lie 50 deep"),
    "lists without end": (
        "jsonl",
        f'{{"text": {"[" * 100_000}}}\n',
        "line 1: (values may lie|must be one JSON object)",
    ),
    "an archive that asks for gigabytes": ("csv.xz", greedy_xz(31), "cannot be read: memory usage limit exceeded"),
    "an archive that was cut": ("csv.xz", lzma.compress(PACKED)[:-20], "compressed file ended before"),
    "an archive and rubbish": ("csv.xz", lzma.compress(PACKED) + b"rubbish", "cannot be read"),
    "a compressed file and rubbish": ("csv.gz", gzip.compress(b"a,b\n1,2\n") + b"rubbish", "cannot be read"),
}
READ = {
    "lines of old Macs": ("csv", "text,label\r" + "some words,1\r" * 100_000, 100_000),
    "few fields with holes": ("jsonl", '{"a": 1}\n' * 999 + '{"b": 1}\n', 1000),
    "an archive that asks for megabytes": ("csv.xz", greedy_xz(26), 1),
    # with padding between them, as the format allows
    "archives one behind the other": ("csv.xz", (b"\0" * 8).join(PARTS) + b"\0" * 12, 9_000),
}


@pytest.fixture
def small_limits(monkeypatch):
    """As much as tests can make, so that it is too much."""
    for module in (sources, reading, parquet_reading):
        monkeypatch.setattr(module, "LONGEST", MEGABYTE)
    monkeypatch.setattr(reading, "_BARE", 1000)
    monkeypatch.setattr(reading, "_CELLS", 1000)


@pytest.mark.parametrize("ending, content, why", REFUSED.values(), ids=REFUSED)
def test_tables_that_are_refused(tmp_path, small_limits, ending, content, why):
    refused(put(tmp_path, f"t.{ending}", content), why)


@pytest.mark.parametrize("ending, content, rows", READ.values(), ids=READ)
def test_odd_tables_that_are_read(tmp_path, small_limits, ending, content, rows):
    assert len(read_table(put(tmp_path, f"t.{ending}", content))) == rows


def test_brackets_in_a_text_are_not_depth(tmp_path):
    table = read_table(put(tmp_path, "t.jsonl", json.dumps({"text": "[" * 500, "n": [[1]] * 100}) + "\n"))
    assert table.columns["text"] == ["[" * 500]


@pytest.mark.parametrize("label", ["--5", "-0", "007", "9" * 5000, "9" * 19, "-", "٣"])
def test_labels_that_only_look_like_numbers(tmp_path, label):
    table = read_table(put(tmp_path, "t.csv", f"text,label\na,{label}\nb,1\n"))
    assert labels_of(table, "label") == [label, "1"]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_line_without_end(tmp_path, small_limits, kind):
    """A compressed file of a few kilobytes may hold a line that fills any memory: it is read so far and no further."""
    head = b"text,label\n" if kind == "csv" else b'{"text": "a"}\n'
    source = put(tmp_path, f"t.{kind}.gz", deflated([head, *[b"x" * MEGABYTE] * 64]))
    tracemalloc.start()
    try:
        refused(source, "line 2: a line may have 1,048,576 bytes; saw more")
        assert tracemalloc.get_traced_memory()[1] < 16 * MEGABYTE
    finally:
        tracemalloc.stop()


def test_long_names_make_no_long_message(tmp_path):
    table = read_table(put(tmp_path, "t.csv", ",".join(f"{i}" * 2000 for i in range(200)) + "\n" + "," * 199 + "\n"))
    for text in (None, "x" * 5000):
        with pytest.raises(DataError) as error:
            guess_columns(table, text, None)
        assert len(str(error.value)) < 2000


# ---- Parquet


def parquet_file(folder, columns, **options):
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(columns), folder / "t.parquet", **options)
    return str(folder / "t.parquet")


@pytest.mark.parametrize("typed", [True, False])
def test_one_text_a_thousand_times(tmp_path, monkeypatch, typed):
    """Twenty kilobytes that say "the first text again": batch by batch they are read, as a whole they are refused."""
    import pyarrow

    text = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 4000, "int32"), ["x" * 10_000])
    source = parquet_file(tmp_path, {"text": text}, store_schema=typed)
    monkeypatch.setattr(parquet_reading, "_HELD", 1 << 20)
    monkeypatch.setattr(parquet_reading, "_WHOLE", 1 << 20)
    sizes = [len(batch) for batch in read_batches(source)]
    assert sum(sizes) == 4000
    assert max(sizes) <= 105
    monkeypatch.setattr(parquet_reading, "_SWELLING", 100)
    with pytest.raises(DataError, match="bytes would become 40,000,000 bytes of text"):
        read_table(source)


def test_rows_keep_their_numbers_where_batches_are_cut(tmp_path, monkeypatch):
    columns = {"text": [f"{i}" * 50 for i in range(100)], "n": list(range(100))}
    source = parquet_file(tmp_path, columns, row_group_size=7)
    whole = read_table(source)
    monkeypatch.setattr(parquet_reading, "_HELD", 256)
    pieces = list(read_batches(source, rows=20))
    assert [value for piece in pieces for value in piece.columns["text"]] == whole.columns["text"]
    assert [piece.place(i) for piece in pieces for i in range(len(piece))] == [f"row {i + 1}" for i in range(100)]


def test_no_more_is_asked_for_than_there_is():
    """A file that declares gigabytes would make Python reserve them before it reads."""

    class Watching(io.BytesIO):
        asked = 0

        def read(self, size=-1):
            self.asked = max(self.asked, size)
            return super().read(size)

    file = Watching(b"0123456789")
    bounded = parquet_reading._Bounded(file, 10)
    bounded.seek(4)
    assert bounded.read(1 << 60) == b"456789"
    assert bounded.read() == b""
    assert file.asked == 6


def test_texts_that_are_no_text_or_too_long(tmp_path, small_limits):
    import pyarrow

    buffers = [None, pyarrow.py_buffer(bytes([0, 0, 0, 0, 2, 0, 0, 0])), pyarrow.py_buffer(b"\xff\x1b")]
    bad = pyarrow.Array.from_buffers(pyarrow.string(), 1, buffers)
    refused(parquet_file(tmp_path, {"text": bad}), "not a valid Parquet file")
    long = ["a", "b" * (MEGABYTE + 1)]
    refused(parquet_file(tmp_path, {"text": long}), "row 2: the texts of a row may have 1,048,576 bytes; saw 1,048,577")


def test_dates_as_json_lines(tmp_path):
    when = datetime(2020, 2, 2, tzinfo=UTC)
    source = parquet_file(tmp_path, {"text": ["a"], "when": [when], "raw": [b"\xff"]})
    write_table(str(tmp_path / "out.jsonl"), read_table(source).columns)
    assert json.loads((tmp_path / "out.jsonl").read_text())["when"] == str(when)


def test_a_page_that_declares_more_than_there_is(tmp_path, monkeypatch):
    """As many values as memory has no room for, in a file of some hundred bytes."""
    import pyarrow

    def batches(*given, **options):
        raise pyarrow.ArrowMemoryError("malloc of size 4294976000 failed")

    source = parquet_file(tmp_path, {"text": ["a"]})
    monkeypatch.setattr("pyarrow.parquet.ParquetFile.iter_batches", batches)
    refused(source, "t.parquet: asks for more memory than there is: malloc of size 4294976000 failed. Check")


def test_half_characters_to_parquet(tmp_path):
    with pytest.raises(OutputError, match="cannot write") as error:
        write_table(str(tmp_path / "out.parquet"), {"text": ["\ud800"]})
    assert str(error.value).isprintable()
    assert not (tmp_path / "out.parquet").exists()
