"""Tables in batches: one below the other they are the whole table, whatever the size of a batch."""

import bz2
import codecs
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

from .both import both_ways, joined, put

CELLS = st.text(st.sampled_from('ab ,;\t"\n\ré我\ufeff\u2028'), max_size=6)
SIZES = st.integers(1, 5)


def agree(content: bytes, ending: str, size: int):
    """Read both ways; the table, for those who know what it must be."""
    with tempfile.TemporaryDirectory() as folder:
        return both_ways(put(Path(folder), f"t.{ending}", content), rows=size)


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
    table = both_ways(str(tmp_path / "t.parquet"), rows=size)
    assert table.columns == columns
    assert table.place(6) == "row 7"


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
    packed = both_ways(put(tmp_path, f"t.{kind}.{ending}", PACK[ending](content)))
    plain = both_ways(put(tmp_path, f"t.{kind}", content))
    assert packed.columns == plain.columns


def test_a_compressed_parquet_file(tmp_path):
    write_table(str(tmp_path / "t.parquet"), {"text": ["a", "b"]})
    (tmp_path / "t.parquet.gz").write_bytes(gzip.compress((tmp_path / "t.parquet").read_bytes()))
    assert read_table(str(tmp_path / "t.parquet.gz")).columns == {"text": ["a", "b"]}


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


FLOWING = {
    "csv": ("csv", b"text,late\na,\nb,\nc,x\n"),
    "jsonl": ("jsonl", b'{"text": "a"}\n{"text": "b"}\n{"text": "c", "late": "x"}\n'),
    "tsv of UTF-16": ("tsv", codecs.BOM_UTF16_LE + "text\nlate\na\n\u0a0a\n".encode("utf-16-le")),
    "jsonl of UTF-16": ("jsonl", codecs.BOM_UTF16_LE + '{"text": "\u0a0a"}\n{"late": 1}\n'.encode("utf-16-le")),
    "parquet": ("parquet", None),
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("kind, content", FLOWING.values(), ids=FLOWING)
def test_what_flows_once(tmp_path, monkeypatch, kind, content):
    """Standard input and pipes: what is read twice is copied first."""
    file, pipe = tmp_path / f"t.{kind}", tmp_path / f"pipe.{kind}"
    if content is None:
        write_table(str(file), {"text": ["a", "b", "c"], "late": ["x", None, "z"]})
    else:
        file.write_bytes(content)
    expected = read_table(str(file)).columns
    for read in (read_table, lambda *given: read_batches(*given, rows=2)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(file.read_bytes())))
        found = read("-", kind)
        assert (found.columns if read is read_table else joined(found)[0]) == expected
    if content is not None:
        os.mkfifo(pipe)
        feed = threading.Thread(target=pipe.write_bytes, args=(content,))
        feed.start()
        assert joined(read_batches(str(pipe), rows=2))[0] == expected
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
