"""A folder of tables: which of them are read, in which order, and what is said of the others."""

from pathlib import Path

import pytest

from keytokens import DataError
from keytokens.io import read_batches, read_table, tables_in, write_table
from keytokens.io.table import Wanted

README = 'This is the data of the café.\nIt has "two\tcolumns\n'.encode("latin-1")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("d/sub/deep").mkdir(parents=True)
    write_table("d/b.csv", {"review": ["b one"], "stars": [1]})
    write_table("d/sub/c.jsonl", {"stars": [2], "review": ["c one"]})
    write_table("d/sub/deep/a.parquet", {"review": ["a one", "a two"], "stars": [3, 4]})
    return Path("d")


def both_ways(wanted=None):
    """Rows and what is skipped, of the whole and of batches of one row, each read twice."""
    found = []
    for read in (
        lambda *given: [read_table("d", None, *given)],
        lambda *given: list(read_batches("d", None, *given, rows=1)),
    ):
        told = []
        asked = [] if wanted is None else [Wanted(*wanted, told.append)]
        for _ in range(2):
            columns = {}
            for table in read(*asked):
                assert not columns or list(columns) == list(table.columns)
                for name, values in table.columns.items():
                    columns.setdefault(name, []).extend(values)
            found.append((columns, told, [(each.text, each.label) for each in asked]))
    assert found[0] == found[1] == found[2] == found[3]
    return found[0][:2]


def test_subfolders_are_read_in_order(folder):
    columns, told = both_ways((None, None))
    assert columns == {"review": ["b one", "c one", "a one", "a two"], "stars": ["1", 2, 3, 4]}
    assert told == []
    assert both_ways()[0] == columns


def test_what_is_hidden_and_links_to_folders(folder):
    for name in (".git", "_spark", "__MACOSX"):
        (folder / name).mkdir()
        write_table(f"d/{name}/x.csv", {"review": ["no"], "stars": [1]})
    write_table("d/.hidden.csv", {"review": ["no"], "stars": [1]})
    (folder / "round").symlink_to(folder.absolute(), target_is_directory=True)
    (folder / "sub" / "file.csv").symlink_to((folder / "b.csv").absolute())
    expected = ["d/b.csv", "d/sub/c.jsonl", "d/sub/deep/a.parquet", "d/sub/file.csv"]
    assert [path.as_posix() for path in tables_in(folder)] == expected
    assert both_ways((None, None))[0]["review"] == ["b one", "c one", "a one", "a two", "b one"]


def test_a_folder_that_cannot_be_listed(folder, monkeypatch):
    plain = Path.iterdir

    def listed(path):
        if path.name == "sub":
            raise PermissionError(13, "Permission denied")
        return plain(path)

    monkeypatch.setattr(Path, "iterdir", listed)
    with pytest.raises(DataError, match=r"^d/sub: cannot be read: permission denied\.$"):
        read_table("d")


@pytest.mark.parametrize("wanted", [(None, None), ("review", None), ("review", "stars")])
def test_what_is_skipped_is_told(folder, wanted):
    """The text for people comes first by its name, and is a table of one column by its ending."""
    (folder / "README.txt").write_bytes(README)
    (folder / "empty.csv").touch()
    (folder / "header.csv").write_text("review,stars\n")
    write_table("d/sub/only.csv", {"review": ["no label"]})
    columns, told = both_ways(wanted)
    assert columns["review"] == ["b one", "c one", "a one", "a two"]
    assert told == [
        "skipped README.txt: no column 'review' and no column 'stars'",
        "skipped empty.csv: no rows",
        "skipped header.csv: no rows",
        "skipped sub/only.csv: no column 'stars'",
    ]


def test_files_that_are_no_tables_are_told_in_one_line(folder):
    """Somebody may have thought that they are read."""
    for name in ("notes.md", "sub/more.xlsx", ".hidden.xlsx", "_SUCCESS", *(f"z{i:02}.jpg" for i in range(12))):
        (folder / name).touch()
    _, told = both_ways((None, None))
    pictures = ", ".join(f"z{i:02}.jpg" for i in range(8))
    assert told == [f"skipped notes.md, sub/more.xlsx, {pictures} and 4 more: not a table"]


@pytest.mark.parametrize("name", ["README.txt", "about.txt"])
def test_one_table_beside_a_text(tmp_path, monkeypatch, name):
    """Each has one column, and both look like texts: an ending decides."""
    monkeypatch.chdir(tmp_path)
    Path("d").mkdir()
    Path(f"d/{name}").write_text("This is the data\nIt has two lines\n")
    write_table("d/data.csv", {"answer": ["a great film is here"]})
    told = []
    wanted = Wanted(None, None, told.append, need_label=False)
    assert read_table("d", None, wanted).columns == {"answer": ["a great film is here"]}
    assert wanted.text == "answer"
    assert told == [f"skipped {name}: no column 'answer'"]


def test_a_column_that_nobody_reads(folder):
    """Missing here, extra there, in another order: all of them are kept."""
    write_table("d/a.csv", {"id": ["7"], "stars": [0], "review": ["a zero"]})
    write_table("d/z.jsonl", {"stars": [9], "review": ["z one"], "more": [[1]]})
    columns, told = both_ways((None, None))
    assert told == []
    assert columns["review"] == ["a zero", "b one", "c one", "a one", "a two", "z one"]
    assert columns["id"] == ["7", None, None, None, None, None]
    assert columns["more"] == [None, None, None, None, None, [1]]


def test_columns_are_guessed_from_what_the_tables_share(folder):
    """Not from the first, nor from the one with the most columns."""
    write_table("d/a-list.csv", {"text": ["not this"], "label": ["x"], "c": [1], "d": [2], "e": [3]})
    columns, told = both_ways((None, None))
    assert list(columns) == ["review", "stars"]
    assert told == ["skipped a-list.csv: no column 'review' and no column 'stars'"]
    assert list(both_ways(("text", None))[0]) == ["text", "label", "c", "d", "e"]


def test_damage_is_not_skipped(folder):
    """A table that has the columns is read or refused."""
    Path("d/sub/bad.csv").write_text("review,stars\na,1\nb,2,3\n")
    for read in (read_table, lambda *given: list(read_batches(*given))):
        with pytest.raises(DataError, match=r"^d/sub/bad\.csv, line 3: a row must have 2 fields"):
            read("d", None, Wanted(None, None, print))
    Path("d/sub/bad.csv").unlink()
    Path("d/sub/bad.csv.gz").write_bytes(b"review,stars\n")
    with pytest.raises(DataError, match=r"^d/sub/bad\.csv\.gz: cannot be read: not a gzipped file"):
        read_table("d", None, Wanted(None, None, print))


def test_places_name_the_file(folder):
    table = read_table("d", None, Wanted(None, None, print))
    assert [table.place(i) for i in (0, 1, 3)] == [
        "d/b.csv, line 2",
        "d/sub/c.jsonl, line 1",
        "d/sub/deep/a.parquet, row 2",
    ]


def test_nobody_to_be_told(folder):
    """Whoever reads a folder as it is gets all tables of it, or a refusal."""
    (folder / "README.txt").write_bytes(README)
    for read in (read_table, lambda source: list(read_batches(source))):
        with pytest.raises(
            DataError, match=r"^d/README\.txt: its columns must be those of d/b\.csv; saw no column 'review'"
        ):
            read("d")


def test_columns_that_are_nowhere(folder):
    with pytest.raises(DataError, match=r"--text must name a column; saw 'nope', the columns are 'review', 'stars'"):
        read_table("d", None, Wanted("nope", None, print))


def test_tables_without_a_row(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("d").mkdir()
    Path("d/a.csv").write_text("text,label\n")
    Path("d/b.csv").touch()
    with pytest.raises(DataError, match="must hold"):
        read_table("d", None, Wanted(None, None, print))
