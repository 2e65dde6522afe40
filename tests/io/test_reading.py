"""Tables in batches: one below the other they are the whole table, whatever the size of a batch."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import sys
import tempfile
import threading
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keytokens import DataError
from keytokens.io import read_batches, read_table, write_table

CELLS = st.text(st.sampled_from('ab ,;\t"\n\ré我\ufeff\u2028'), max_size=6)
SIZES = st.integers(1, 5)


def joined(batches):
    """Columns and places of batches, which must agree on their columns."""
    columns, places = {}, []
    for batch in batches:
        assert len(batch)
        assert not columns or list(columns) == list(batch.columns)
        for name, values in batch.columns.items():
            columns.setdefault(name, []).extend(values)
        places += [batch.place(i) for i in range(len(batch))]
    return columns, places


def whole(table):
    return table.columns, [table.place(i) for i in range(len(table))]


def agree(content: bytes, ending: str, size: int):
    """Read both ways; the table, for those who know what it must be."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"t.{ending}"
        file.write_bytes(content)
        table = read_table(str(file))
        assert joined(read_batches(str(file), rows=size)) == whole(table)
        return table


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=12), SIZES, st.sampled_from(["\n", "\r\n"]))
def test_csv_batches_are_the_table(rows, size, end):
    """Quoted fields with line breaks stand across the ends of batches; the csv module reads the same."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerow(["text", "label"])
    writer.writerows(rows)
    table = agree(text.getvalue().encode(), "csv", size)
    assert list(zip(table.columns["text"], table.columns["label"], strict=True)) == rows


@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), st.none() | st.integers() | CELLS), min_size=1, max_size=9), SIZES
)
def test_json_lines_batches_are_the_table(records, size):
    """A field may come late and be missing anywhere: it is None there."""
    content = "\n".join(json.dumps(record, ensure_ascii=False) for record in records).encode()
    if not any(records):
        with pytest.raises(DataError, match="the file must hold at least one row"):
            agree(content, "jsonl", size)
        return
    table = agree(content, "jsonl", size)
    names = list(dict.fromkeys(key for record in records for key in record))
    assert table.columns == {key: [record.get(key) for record in records] for key in names}


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_parquet_batches_are_the_table(tmp_path, size):
    import pyarrow
    from pyarrow import parquet

    columns = {"text": [f"t {i}" for i in range(7)], "n": [*range(6), None]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet", row_group_size=3)
    table = read_table(str(tmp_path / "t.parquet"))
    assert table.columns == columns
    assert table.place(6) == "row 7"
    assert joined(read_batches(str(tmp_path / "t.parquet"), rows=size)) == whole(table)


PACK = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


@pytest.mark.parametrize("ending", sorted(PACK))
@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("csv", b'\xef\xbb\xbftext;n\r\nx y;1\r\n\r\n"two\r\nlines";2\r\n'),
        ("tsv", b"text\tn\nx y\t1\n"),
        ("jsonl", b'{"text": "x y"}\n\n{"text": "z", "late": 1}\n'),
    ],
)
def test_compressed_files_are_what_they_hold(tmp_path, kind, content, ending):
    plain, packed = tmp_path / f"t.{kind}", tmp_path / f"t.{kind}.{ending}"
    plain.write_bytes(content)
    packed.write_bytes(PACK[ending](content))
    expected = whole(read_table(str(plain)))
    assert whole(read_table(str(packed))) == expected
    assert joined(read_batches(str(packed), rows=1)) == expected


def test_a_compressed_parquet_file(tmp_path):
    write_table(str(tmp_path / "t.parquet"), {"text": ["a", "b"]})
    (tmp_path / "t.parquet.gz").write_bytes(gzip.compress((tmp_path / "t.parquet").read_bytes()))
    assert read_table(str(tmp_path / "t.parquet.gz")).columns == {"text": ["a", "b"]}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "t.csv.gz",
            gzip.compress(b"text\nab\n" * 99, mtime=0)[:-9],
            "t.csv.gz: cannot be read: compressed file ended before",
        ),
        ("t.csv.gz", b"text\nab\n", "t.csv.gz: cannot be read: not a gzipped file"),
        ("t.csv.xz", b"text\nab\n", "t.csv.xz: cannot be read: input format not supported by decoder."),
        ("t.csv.gz", gzip.compress(b"", mtime=0), "t.csv.gz: the file must hold a table; it is empty."),
        (
            "t.csv.gz",
            gzip.compress(b"a,b\nx,1\ny\n", mtime=0),
            "t.csv.gz, line 3: a row must have 2 fields like the header",
        ),
        (
            "t.xls.gz",
            b"",
            "t.xls.gz: the name must end in one of .csv, .jsonl, .ndjson, .parquet, .tsv, .txt; saw '.xls",
        ),
    ],
)
def test_damaged_compressed_files(tmp_path, monkeypatch, name, content, message):
    (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    for read in (read_table, lambda source: list(read_batches(source, rows=2))):
        with pytest.raises(DataError) as refused:
            read(name)
        assert str(refused.value).startswith(message)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("kind", "good"), [("csv", b"a,b\n"), ("jsonl", b'{"a": 1}\n')])
@pytest.mark.parametrize("lines", [1, 1000, 100_000])
def test_a_byte_that_is_no_text_is_found_on_its_line(tmp_path, kind, good, lines):
    """Also behind a byte order mark, and far behind what is read at once."""
    file = tmp_path / f"t.{kind}"
    file.write_bytes(b"\xef\xbb\xbf" + good * lines + b"\xc3\xa9\xff\n")
    with pytest.raises(DataError, match=f"line {lines + 1}: the text must be UTF-8; saw the byte 0xff"):
        list(read_batches(str(file)))


@pytest.mark.parametrize(
    ("kind", "good", "bad", "message"),
    [
        ("csv", '"x\ny",1\n', "z\n", "line 2002: a row must have 2 fields like the header; saw 1"),
        ("jsonl", '{"text": "x"}\n\n', "[1]\n", "line 2002: must be a JSON object with named fields"),
    ],
)
def test_an_error_comes_after_the_batches_before_it(tmp_path, kind, good, bad, message):
    head = "text,n\n" if kind == "csv" else '{"text": "x"}\n'
    (tmp_path / f"t.{kind}").write_text(head + good * 1000 + bad)
    batches = read_batches(str(tmp_path / f"t.{kind}"), rows=10)
    if kind == "csv":
        assert len(next(batches)) == 10
    with pytest.raises(DataError, match=message):
        list(batches)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_standard_input_in_batches(tmp_path, monkeypatch, kind):
    columns = {"text": ["a", "b", "c"], "late": ["x", "y", "z"]}
    write_table(str(tmp_path / f"t.{kind}"), columns)
    content = (tmp_path / f"t.{kind}").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert joined(read_batches("-", kind, rows=2))[0] == columns


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_pipe_flows_once(tmp_path, kind):
    """JSON lines are read twice: what cannot be is copied first."""
    write_table(str(tmp_path / f"t.{kind}"), {"text": ["a", "b", "c"]})
    pipe = tmp_path / f"pipe.{kind}"
    os.mkfifo(pipe)
    content = (tmp_path / f"t.{kind}").read_bytes()
    feed = threading.Thread(target=pipe.write_bytes, args=(content,))
    feed.start()
    assert joined(read_batches(str(pipe), rows=2))[0] == {"text": ["a", "b", "c"]}
    feed.join()


@pytest.mark.parametrize("ending", ["csv", "jsonl", "csv.gz", "parquet"])
def test_the_memory_holds_a_batch(tmp_path, ending):
    """Ten thousand rows by the hundred take a small part of what the whole takes."""
    file, rows = str(tmp_path / f"t.{ending}"), 10_000
    write_table(file, {"text": [f"text number {i} " * 30 for i in range(rows)], "n": ["1"] * rows})

    def peak(read):
        tracemalloc.start()
        try:
            assert read() == rows
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    whole_table = peak(lambda: len(read_table(file)))
    assert peak(lambda: sum(map(len, read_batches(file, rows=100)))) < whole_table / 5
