"""Tables of labelled text in and out, whole or in batches: CSV, TSV, JSON lines and Parquet.

`-` is standard input or output. Files whose names go on with .gz, .bz2 or .xz are compressed. A folder is the tables in
it and in its subfolders, one below the other. Batches keep the memory bounded whatever the size.
"""

from .reading import read_batches, read_table, tables_in
from .sources import FORMATS
from .table import Table, labels_of, texts_of
from .writing import table_writer, write_table

__all__ = [
    "FORMATS",
    "Table",
    "labels_of",
    "read_batches",
    "read_table",
    "table_writer",
    "tables_in",
    "texts_of",
    "write_table",
]
