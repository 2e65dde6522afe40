"""Tables written batch by batch: the same file as at once, and no file at all if something goes wrong."""

import gzip

import pytest

from keytokens import OutputError
from keytokens.io import read_table, table_writer, write_table, writing
from keytokens.io.sources import through_compression

COLUMNS = {"text": ["a, b", 'say "c"', "two\nlines", "é 我", "\ud800"], "n": [1, 0, 1, 0, 5]}


def halves(columns):
    return [{k: v[:2] for k, v in columns.items()}, {k: v[2:] for k, v in columns.items()}]


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "csv.gz", "tsv.bz2", "jsonl.xz"])
def test_batches_give_the_same_bytes(tmp_path, ending):
    write_table(str(tmp_path / f"whole.{ending}"), COLUMNS)
    with table_writer(str(tmp_path / f"parts.{ending}")) as write:
        for part in halves(COLUMNS):
            write(part)
    assert (tmp_path / f"parts.{ending}").read_bytes() == (tmp_path / f"whole.{ending}").read_bytes()
    assert len(read_table(str(tmp_path / f"parts.{ending}"))) == 5


def test_what_is_in_a_compressed_file(tmp_path):
    write_table(str(tmp_path / "t.csv.gz"), {"a": [1, 2]})
    assert gzip.decompress((tmp_path / "t.csv.gz").read_bytes()) == b"a\n1\n2\n"


@pytest.mark.parametrize(
    ("first", "second"), [([1, 2], [3.5]), ([None, None], ["late"]), (["a"], [None]), ([{"x": 1}], [{"x": 2}])]
)
def test_parquet_types_are_those_of_all_rows(tmp_path, first, second):
    """A type that is known only from the second batch is the type that the whole column would have had."""
    from pyarrow import parquet

    write_table(str(tmp_path / "whole.parquet"), {"a": first + second})
    with table_writer(str(tmp_path / "parts.parquet")) as write:
        write({"a": first})
        write({"a": second})
    parts = parquet.read_table(tmp_path / "parts.parquet")
    assert parts.equals(parquet.read_table(tmp_path / "whole.parquet"))


def test_parquet_of_several_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr("keytokens.io.writing._GROUP", 4)
    with table_writer(str(tmp_path / "t.parquet")) as write:
        for i in range(7):
            write({"n": [2 * i, 2 * i + 1]})
    from pyarrow.parquet import ParquetFile

    with ParquetFile(tmp_path / "t.parquet") as file:
        assert file.num_row_groups == 4
    assert read_table(str(tmp_path / "t.parquet")).columns == {"n": list(range(14))}


@pytest.mark.parametrize("batches", [[["a", 1]], [["a"], [1]]])
def test_parquet_columns_of_two_kinds_are_refused(tmp_path, batches):
    target = str(tmp_path / "t.parquet")

    def put():
        with table_writer(target) as write:
            for values in batches:
                write({"a": values})

    with pytest.raises(OutputError, match=r"a column of a Parquet file must hold values of one kind; .* Write"):
        put()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["csv", "jsonl.gz", "parquet"])
def test_nothing_half_written(tmp_path, ending):
    """The old file stays as it was until the last row is in the new one; of a failure nothing is left."""
    target = tmp_path / f"t.{ending}"
    target.write_bytes(b"old")

    def put():
        with table_writer(str(target)) as write:
            write({"a": [1]})
            assert target.read_bytes() == b"old"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        put()
    assert [file.name for file in tmp_path.iterdir()] == [target.name]
    assert target.read_bytes() == b"old"


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz"])
def test_a_packed_file_is_closed_after_a_failure(tmp_path, monkeypatch, ending):
    """Left open it would write its last bytes when it is collected, into a file that is closed by then."""
    opened = []

    def watched(*given):
        opened.append(through_compression(*given))
        return opened[0]

    def put():
        with table_writer(str(tmp_path / f"t.csv.{ending}")) as write:
            write({"a": [1]})
            raise ZeroDivisionError

    monkeypatch.setattr(writing, "through_compression", watched)
    with pytest.raises(ZeroDivisionError):
        put()
    assert opened[0].closed
    assert list(tmp_path.iterdir()) == []


def test_standard_output_gets_every_batch_at_once(capsysbinary):
    with table_writer("-") as write:
        write({"a": [1]})
        write({"a": [2]})
    assert capsysbinary.readouterr().out == b"a\n1\n2\n"
