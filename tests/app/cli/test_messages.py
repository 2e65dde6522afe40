"""Every refusal of the command line: what was typed, and the one line that is the answer."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from keytokens.app.cli.app import run

from ...messages import check_same, rows

FILES: dict[str, bytes] = {
    "columns.csv": b"text,label\na,x\n",
    "empty.csv": b"",
    "latin.csv": b"text,label\n\xff,x\n",
    "broken.parquet": b"PAR1 broken",
    "t.v1": b"text,label\na,x\n",
    "one.jsonl": b'{"text": "a b", "label": "x"}\n{"text": "c d", "label": "x"}\n',
    "mixed.jsonl": b'{"text": "a b", "label": "x"}\n{"text": "c d", "label": 1}\n',
    "missing.jsonl": b'{"text": "a b", "label": "x"}\n{"text": "c d", "label": null}\n',
}
TABLE = """
fitt
    keytokens: ...'fitt'...
fit reviews.csv
    keytokens: Missing option... See `keytokens --help` or `keytokens COMMAND --help`.
fit reviews.csv -o m --ngrams 0
fit reviews.csv -o m --ngrams 99999999999999999999
    keytokens: ...--ngrams... See `keytokens --help` or `keytokens COMMAND --help`.
fit reviews.csv -o m --counts x
    keytokens: KeyTokenClassifier: `counts` must be one of 'raw', 'log', 'binary'; saw 'x'.
fit reviews.csv -o m --format xml
    keytokens: --format must be one of csv, jsonl, parquet, tsv; saw 'xml'.

fit columns.csv -o m --text body
    keytokens: columns.csv: --text must name a column; saw 'body', the columns are 'text', 'label'.
fit empty.csv -o m
    keytokens: empty.csv: the file must hold a table; it is empty.
fit latin.csv -o m
    keytokens: latin.csv, line 2: the text must be UTF-8; saw the byte 0xff.
    Save the file as UTF-8 (for example: iconv -f latin1 -t utf-8).
fit broken.parquet -o m
    keytokens: broken.parquet: not a valid Parquet file: ...
fit none.csv -o m
    keytokens: none.csv: cannot be read: no such file or directory.
fit some/none -o m
    keytokens: some/none: cannot be read: no such file or directory.
fit some/none.v1 -o m --memory 1GB
    keytokens: some/none.v1: cannot be read: no such file or directory.
fit LONG -o m
fit LONG -o m --format csv
fit LONG -o m --resume --format jsonl
fit LONG.csv -o m
fit LONG.csv -o m --format csv
fit LONG.csv -o m --resume --format jsonl
    keytokens: 111...111...: cannot be read: ...
fit t.v1 -o m
    keytokens: t.v1: the name must end in one of .csv, .jsonl, .ndjson, .parquet, .tsv, .txt; saw '.v1'.
    Rename it or give --format.
fit one.jsonl -o m --json
    keytokens: fit: `labels` must have at least two classes; saw only 'x'. Add texts of another class.
fit mixed.jsonl -o m --json
    keytokens: fit: `labels` must be strings, integers or booleans, all of one kind;
    saw strings (labels[0] = 'x'), integers (labels[1] = 1). Convert them all with str().
fit missing.jsonl -o m
    keytokens: missing.jsonl, line 2: 'label' must be a label; saw None. Drop the row or fill it in.

predict nowhere reviews.csv
    keytokens: load: there is no model at 'nowhere': no such directory.
explain empty text
    keytokens: load: 'empty' is not a readable keytokens model: model.json is missing. Save it again.

predict model reviews.csv -o no/where/out.csv
    keytokens: cannot write 'no/where/out.csv': no such file or directory. What was there before is unchanged.
fit reviews.csv -o file
    keytokens: cannot write 'file': not a directory. What was there before is unchanged.
"""


@pytest.fixture(scope="module")
def folder(made, tmp_path_factory) -> Path:
    """With tables that are broken, and an empty folder."""
    place: Path = shutil.copytree(made, tmp_path_factory.mktemp("messages") / "here", symlinks=True)
    for name, content in FILES.items():
        (place / name).write_bytes(content)
    (place / "empty").mkdir()
    return place


def contents(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("words, message", rows(TABLE))
def test_refusals(folder, monkeypatch, capsys, words: str, message: str):
    """One line, exit code 2, nothing said besides, and nothing written."""
    monkeypatch.chdir(folder)
    before = contents(folder)
    assert run(shlex.split(words.replace("LONG", "1" * 300))) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.endswith("\n")
    check_same(said.err.removesuffix("\n"), message)
    assert contents(folder) == before
