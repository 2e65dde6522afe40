"""Tables in and out, and one clear line for each that is broken."""

import gzip
import json
import re

import pytest

from keytokens import DataError
from keytokens.io import labels_of, read_batches, read_table, texts_of, write_table
from keytokens.io.table import Wanted, as_classes, guess_columns

from .both import put, refused

ROWS = {"text": ["a, b", 'say "c"', "two\nlines", "é 我"], "label": [1, 0, 1, 0]}


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_round_trip(ending, tmp_path):
    file = str(tmp_path / f"t.{ending}")
    write_table(file, ROWS)
    table = read_table(file)
    assert texts_of(table, "text") == ROWS["text"]
    assert labels_of(table, "label") == ROWS["label"]


def test_semicolons_byte_order_mark_and_windows_lines(tmp_path):
    table = read_table(put(tmp_path, "t.csv", "\ufefftext;label\r\nein Satz;gut\r\n\r\nnoch einer;schlecht\r\n"))
    assert table.columns == {"text": ["ein Satz", "noch einer"], "label": ["gut", "schlecht"]}
    assert table.place(1) == "line 4"


ENDINGS = "the name must end in one of .csv, .jsonl, .ndjson, .parquet, .tsv, .txt; saw"
BROKEN = [
    ("t.csv", "", "t.csv: the file must hold a table; it is empty."),
    ("t.csv", "text,label\n", "t.csv: the file must hold at least one row; saw none."),
    ("t.csv", b"text,label\nok,1\nbad\xe9,0\n", "t.csv, line 3: the text must be UTF-8; saw the byte 0xe9. Save"),
    ("t.csv", "text,label\na,1\nb,c,0\n", "t.csv, line 3: a row must have 2 fields like the header; saw 3."),
    ("t.csv", 'text,label\n"x\ny",1\nb\n', "t.csv, line 4: a row must have 2 fields like the header; saw 1."),
    ("t.csv", "text,text\na,1\n", "t.csv, line 1: column names must differ; saw 'text' twice."),
    ("t.jsonl", '{"text": "a"}\n{"text": \n', "t.jsonl, line 2: must be one JSON object; saw '{\"text\": '."),
    ("t.jsonl", "[1, 2]\n", "t.jsonl, line 1: must be a JSON object with named fields; saw [1, 2]."),
    ("t.parquet", "not parquet at all", "t.parquet: not a valid Parquet file: "),
    ("t.parquet", b"PAR1\x00\x00\x00\x00PAR1", "t.parquet: not a valid Parquet file: "),
    ("t.xls", "x", f"t.xls: {ENDINGS} '.xls'."),
    ("t.xls.gz", "", f"t.xls.gz: {ENDINGS} '.xls"),
    ("t.csv.gz", gzip.compress(b"text\nab\n" * 99)[:-9], "t.csv.gz: cannot be read: compressed file ended before"),
    ("t.csv.gz", "text\nab\n", "t.csv.gz: cannot be read: not a gzipped file"),
    ("t.csv.xz", "text\nab\n", "t.csv.xz: cannot be read: input format not supported by decoder."),
    ("t.csv.gz", gzip.compress(b""), "t.csv.gz: the file must hold a table; it is empty."),
    ("t.csv.gz", gzip.compress(b"a,b\nx,1\ny\n"), "t.csv.gz, line 3: a row must have 2 fields like the header"),
]


@pytest.mark.parametrize("name, content, message", BROKEN, ids=range(len(BROKEN)))
def test_broken_files(name, content, message, tmp_path, monkeypatch):
    put(tmp_path, name, content)
    monkeypatch.chdir(tmp_path)
    refused(name, f"^{re.escape(message)}")


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(DataError, match="cannot be read: no such file or directory"):
        read_table(str(tmp_path / "t.csv"))
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(DataError, match=r"d\.csv: the folder must hold tables"):
        read_table(str(tmp_path / "d.csv"))


def table_of(tmp_path, **columns):
    file = tmp_path / "t.jsonl"
    rows = zip(*columns.values(), strict=True)
    file.write_text("\n".join(json.dumps(dict(zip(columns, row, strict=True))) for row in rows))
    return read_table(str(file))


LONG = ["this is a long text", "and here is another one"]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"id": [1, 2], "Review": LONG, "Sentiment": ["p", "n"]}, ("Review", "Sentiment")),
        ({"what_they_said": LONG * 5, "kind": ["p", "n"] * 5}, ("what_they_said", "kind")),
        ({"label": ["p", "n"], "text": LONG}, ("text", "label")),
    ],
)
def test_guesses(columns, expected, tmp_path):
    assert guess_columns(table_of(tmp_path, **columns), None, None) == expected


def test_named_columns_win(tmp_path):
    table = table_of(tmp_path, text=LONG, other=LONG, label=[0, 1], y2=[1, 0])
    assert guess_columns(table, "other", "y2") == ("other", "y2")
    with pytest.raises(DataError, match=r"--text must name a column; saw 'nope', the columns are 'text', 'other', 'la"):
        guess_columns(table, "nope", None)


def test_undecided_guesses_ask(tmp_path):
    with pytest.raises(DataError, match=r"which column holds the text\? Name it with --text: 'a', 'b', 'label'\."):
        guess_columns(table_of(tmp_path, a=LONG, b=LONG, label=[0, 1]), None, None)
    with pytest.raises(DataError, match=r"which column holds the label\? Name it with --label: 'text', 'u', 'v'\."):
        guess_columns(table_of(tmp_path, text=LONG * 9, u=[0, 1] * 9, v=[1, 0] * 9), None, None)


def test_labels_and_texts_that_are_missing(tmp_path):
    table = read_table(put(tmp_path, "t.csv", "text,label\na,1\nb,\n"))
    with pytest.raises(DataError, match=r"line 3: 'label' must be a label; saw ''\. Drop the row or fill it in\."):
        labels_of(table, "label")
    table = table_of(tmp_path, text=["a", None], label=[1, 0])
    with pytest.raises(DataError, match=r"line 2: 'text' must be a string; saw None\. Drop or mend the row\."):
        texts_of(table, "text")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (["1", "0"], [1, 0]),
        (["1.0", "0.0"], [1, 0]),
        (["1.0", "2"], [1, 2]),
        (["1.0", "1.5"], ["1.0", "1.5"]),
        (["1.00", "1"], ["1.00", "1"]),
        (["-1", "1"], [-1, 1]),
        (["01", "1"], ["01", "1"]),
        (["1", "x"], ["1", "x"]),
    ],
)
def test_whole_numbers_in_csv_are_numbers(written, read, tmp_path):
    table = read_table(put(tmp_path, "t.csv", "text,label\n" + "".join(f"t,{y}\n" for y in written)))
    assert labels_of(table, "label") == read


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ([1.0, 0.0], [1, 0]),
        ([1, 0.0], [1, 0]),
        ([1.0, 0.5], [1.0, 0.5]),
        ([True, False], [True, False]),
        ([True, 1.0],) * 2,
    ],
)
def test_whole_floats_are_integers(given, read, tmp_path):
    found = labels_of(table_of(tmp_path, text=LONG, label=given), "label")
    assert list(map(repr, found)) == list(map(repr, read))


def test_labels_that_are_compared_become_what_the_classes_are():
    assert as_classes(["1", "1.0", "x", 0.0], [0, 1]) == [1, 1, "x", 0]
    assert as_classes(["1.0", 1.0], ["1.0", "2.0"]) == ["1.0", 1.0]
    assert as_classes(["1", True], [False, True]) == ["1", True]


HEADLESS = "looks like a row of data, not like names; "


@pytest.mark.parametrize(
    ("name", "content", "seen"),
    [
        ("t.csv", "a great film,pos\nso very dull,neg\na fine film,pos\n", "'pos' is also in line 3."),
        ("t.tsv", "1\ta great film\n0\tso dull\n\n1\tfine\n", "'1' is also in line 4."),
        ("t.csv", "good film, 1\ndull, 0\nfine, 1\n", "'1' is also in line 3."),
        ("t.csv", "a great film\nso very dull\n", "saw 'a great film'."),
    ],
)
def test_a_table_without_a_header(name, content, seen, tmp_path, monkeypatch):
    """Its first row would be lost, and give names to the columns."""
    put(tmp_path, name, content)
    monkeypatch.chdir(tmp_path)
    table = read_table(name)
    for need_label in (True, False):
        with pytest.raises(DataError) as refused:
            guess_columns(table, None, None, need_label)
        advice = "Add a header line such as text,label; if these are the names, give them with --text and --label"
        assert str(refused.value) == f"{name}, line 1: {HEADLESS}{seen} {advice}."
    first, *others = table.columns
    assert guess_columns(table, first, others[0] if others else None, bool(others))[0] == first


@pytest.mark.parametrize(
    "content",
    [
        "text,label\na great film,text\nso dull,label\n",
        "Review,what do you think\na great film is here,what do you think\n",
        "what they said,\nit was a great film,\nit was so dull,\n",
        "what is your opinion,when was that\nit was a great film,today\nit was so dull,today\n",
    ],
)
def test_names_that_may_be_names(content, tmp_path):
    table = read_table(put(tmp_path, "t.csv", content))
    assert guess_columns(table, None, None, need_label=False)[0] in table.columns


def test_a_first_row_that_may_be_a_text_is_told(tmp_path):
    told: list[str] = []
    name = put(tmp_path, "t.csv", "a film like no other,weird\nit was a great film,good\nit was so dull,bad\n")
    table = read_table(name)
    assert Wanted(None, None, told.append).of(table) == ("a film like no other", "weird")
    assert len(told) == 1
    assert "t.csv, line 1: took 'a film like no other' for the name of a column; if that is a text" in told[0]
    assert Wanted("a film like no other", None, told.append).of(table) == ("a film like no other", "weird")
    assert len(told) == 1


def test_fields_of_json_lines_are_names(tmp_path):
    table = table_of(tmp_path, pos=["pos", "neg"], a_text=LONG)
    assert guess_columns(table, None, None) == ("a_text", "pos")


@pytest.mark.parametrize("label", [["x"], {"a": 1}])
def test_labels_that_hold_values(label, tmp_path):
    table = table_of(tmp_path, text=LONG, label=["x", label])
    with pytest.raises(DataError, match=r"line 2: 'label' must be a label; saw [\[{]"):
        labels_of(table, "label")


def test_a_header_that_comes_again(tmp_path):
    """Tables that were put one below the other: a third class of one text, and no score."""
    rows = "text,label\na great film,pos\nso dull,neg\n"
    again = put(tmp_path, "t.csv", rows * 2)
    for read in (read_table, lambda source: list(read_batches(source, rows=1))):
        with pytest.raises(DataError, match=r"t\.csv, line 4: repeats the names of the columns\. Remove the line\.$"):
            read(again)
    assert read_table(put(tmp_path, "t.csv", "text\ntext\n")).columns == {"text": ["text"]}
    assert len(read_table(put(tmp_path, "t.csv", "a great film,pos\n" * 3))) == 2


def test_texts_that_are_bytes(tmp_path):
    write_table(str(tmp_path / "t.parquet"), {"text": [b"a great film"], "label": ["pos"]})
    with pytest.raises(DataError, match=r"row 1: 'text' must be a string; saw b'a great film'. Store the column"):
        texts_of(read_table(str(tmp_path / "t.parquet")), "text")
