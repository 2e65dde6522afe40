"""Tables of labelled text in and out, whole or in batches: CSV, TSV, JSON lines and Parquet.

`-` is standard input or output. Files whose names go on with .gz, .bz2 or .xz are compressed. A folder is the tables in
it and in its subfolders, one below the other. Batches keep the memory bounded whatever the size.
"""

from .columns import Table, Wanted, as_classes, as_numbers, given_labels, guess_columns, labels_of, texts_of
from .kinds import FORMATS, kind_of
from .reading import BATCH, read_batches, read_table, tables_in
from .writing import table_writer, write_table

__all__ = [
    "BATCH",
    "FORMATS",
    "Table",
    "Wanted",
    "as_classes",
    "as_numbers",
    "given_labels",
    "guess_columns",
    "kind_of",
    "labels_of",
    "read_batches",
    "read_table",
    "table_writer",
    "tables_in",
    "texts_of",
    "write_table",
]
