"""Every refusal of the command line: what was typed, and the one line that is the answer."""

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
    "bad.csv": b"text\n" + b"dull\n" * 40 + b"a,b\n",
    "words.csv": b"x0,x1,x2,x3\n1,one,1,1\n",
    "narrow.csv": b"x0\n1\n",
    "a table": b"x0,x1\n",
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

fit - -o m --memory 1GB
    keytokens: ...read the data more than once...
fit in.csv -o m --memory 1MB
fit in.csv -o m --memory much
    keytokens: --memory must be at least 500MB, written like...
fit in.csv -o m --memory 1GB --autotune 1
    keytokens: ...--autotune needs all texts in memory...
fit in.csv -o m --memory 1GB --dask tcp://127.0.0.1:9
    keytokens: ...--dask keeps the texts on the workers...
fit none.csv -o m --resume
    keytokens: none.csv: cannot be read...
fit in.csv -o m --memory 1GB --label grade
    keytokens: ...--label must name a column...
fit empty -o m
    keytokens: empty: the folder must hold tables...

explain model
    keytokens: explain: give one text, or a table with --data; saw neither.
explain model 'a text' --data in.csv
    keytokens: explain: give one text, or a table with --data; saw both.
explain model --data in.csv --html x.html
    keytokens: explain: --html shows one text; saw it with --data. `keytokens report` shows a table.
explain model 'a text' -o out.csv
    keytokens: explain: --output, --text, --words and --format belong to a table...
explain model --data bad.csv -o out.jsonl
    keytokens: bad.csv, line 42: a row must have 1 fields...
explain model --data in.csv -o out.xls
    keytokens: out.xls: the name must end in one of .csv...
explain bags --data in.csv
    keytokens: explain: --data needs a model of texts; 'bags' is a BagClassifier...
explain bags words.csv
    keytokens: words.csv: every column must hold numbers; saw otherwise...
explain bags narrow.csv
    keytokens: ...must have 4 features an instance...
explain bags none.csv
explain bags 'no table'
    keytokens: no...: cannot be read: no such file...
explain bags 'a table'
    keytokens: a table: the name must end in one of...
predict bags in.csv
    keytokens: predict: 'bags' must be a model of texts; saw a BagClassifier...
report bags in.csv
    keytokens: ...must be a model of texts; saw a BagClassifier...
report nowhere in.csv
    keytokens: load: there is no model at 'nowhere'...
report model in.csv --max-tokens 0
    keytokens: ...--max-tokens...
report model in.csv --label y
    keytokens: ...--label must name a column...
report model in.csv -o no/where.html --json
    keytokens: cannot write 'no/where.html': no such file or directory...

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
    (place / "empty" / ".hidden.csv").write_text("text,label\n")
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
