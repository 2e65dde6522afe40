"""Tables in UTF-16 and UTF-32: known by their byte-order mark, or refused with the right advice."""

import codecs
import gzip

import pytest

from keytokens.io import read_table, sources

from .both import both_ways, refused

MARKS = {
    "utf-8": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}
WIDE = list(MARKS)[1:]
# the letters ਊ (U+0A0A) and Ċ (U+010A) have the byte of a newline in them
EXCEL = 'text\tlabel\r\na ਊ film Ċ\tpos\r\n"two\r\nlines, é 我 😀"\tneg\r\n\r\nso bad\tneg\r\n'
READ = {"text": ["a ਊ film Ċ", "two\r\nlines, é 我 😀", "so bad"], "label": ["pos", "neg", "neg"]}
LINES = ["line 2", "line 3", "line 6"]


@pytest.mark.parametrize("encoding", MARKS)
@pytest.mark.parametrize("packing", ["", ".gz"])
def test_unicode_text_of_excel(tmp_path, encoding, packing):
    content = MARKS[encoding] + EXCEL.encode(encoding)
    file = tmp_path / f"t.txt{packing}"
    file.write_bytes(gzip.compress(content) if packing else content)
    table = both_ways(str(file))
    assert table.columns == READ
    assert [table.place(i) for i in range(3)] == LINES


@pytest.mark.parametrize("encoding", WIDE)
def test_json_lines(tmp_path, encoding):
    file = tmp_path / "t.jsonl"
    file.write_bytes(MARKS[encoding] + '{"text": "é 我"}\n\n{"text": "ਊ", "late": 1}\n'.encode(encoding))
    table = both_ways(str(file))
    assert table.columns == {"text": ["é 我", "ਊ"], "late": [None, 1]}
    assert table.place(1) == "line 3"


@pytest.mark.parametrize("encoding", WIDE)
@pytest.mark.parametrize("lines", [1, 1000, 20_000])
def test_errors_name_their_line(tmp_path, encoding, lines):
    file = tmp_path / "t.tsv"
    good = MARKS[encoding] + ("text\tn\r\n" + "ਊ Ċ\t1\r\n" * (lines - 1)).encode(encoding)
    half = "\ud800".encode(encoding, "surrogatepass")
    name = encoding[:6].upper()
    file.write_bytes(good + half + "a\t1\r\n".encode(encoding))
    advice = r"\. Save it as UTF-8\."
    refused(
        str(file),
        f"line {lines + 1}: the text must be {name}, as the byte-order mark says; saw the bytes 0x[0-9a-f]*{advice}",
    )
    file.write_bytes(good + b"x")
    refused(str(file), f"line {lines + 1}: the text must be {name}, as the byte-order mark says; saw the bytes 0x78")
    file.write_bytes(good + "one field\r\n".encode(encoding))
    refused(str(file), f"line {lines + 1}: a row must have 2 fields like the header; saw 1")


def test_a_line_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "LONGEST", 1 << 16)
    file = tmp_path / "t.tsv"
    file.write_bytes(codecs.BOM_UTF16_LE + ("text\tn\n" + "some words\t1\n" * 20_000).encode("utf-16-le"))
    assert len(read_table(str(file))) == 20_000
    file.write_bytes(codecs.BOM_UTF16_LE + ("text\tn\n" + "some words" * 20_000).encode("utf-16-le"))
    refused(str(file), "line 2: a line may have 65,536 bytes; saw more")


@pytest.mark.parametrize("encoding", WIDE)
@pytest.mark.parametrize(
    "text",
    [
        EXCEL,
        "text\n" + "a long text without an end " * 1000,
        "a line and no end of it",
        "текст\tметка\r\n" + "очень хороший фильм\tда\r\n" * 50,
        "文\t本\n" + "我喜欢这部电影" * 20 + "\t好\n",
    ],
    ids=["Excel", "long", "no newline", "Russian", "Chinese"],
)
def test_without_a_mark(tmp_path, encoding, text):
    """It was read as letters with zeros between them, or refused with advice for Latin-1."""
    file = tmp_path / "t.txt"
    file.write_bytes(text.encode(encoding))
    looks = encoding[:6]
    wide = encoding.replace("-", "").replace("utf", "utf-")
    advice = rf"Save it as UTF-8 \(for example: iconv -f {wide} -t utf-8\)"
    many = text.isascii() or looks == "utf-16"
    expected = rf"t\.txt: looks like {looks.upper()} without a byte-order mark\. {advice}\.$"
    refused(str(file), expected if many else "t.txt: looks like UTF-")


@pytest.mark.parametrize("content", [b"text,n\na\0b,1\n", b"text,n\r\n\0,1\r\nx,2\r\ny,3\r\n", b"text\n" + b"a \0" * 9])
def test_a_zero_in_a_text_is_a_letter(tmp_path, content):
    (tmp_path / "t.csv").write_bytes(content)
    assert "\0" in "".join(both_ways(str(tmp_path / "t.csv")).columns["text"])


def test_a_mark_and_nothing_else(tmp_path):
    for content in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_LE + "\r\n \r\n".encode("utf-16-le")):
        (tmp_path / "t.tsv").write_bytes(content)
        refused(str(tmp_path / "t.tsv"), "must hold at least one row; saw none")
