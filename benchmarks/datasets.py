"""The labelled sets that the benchmarks read, texts and bags of vectors; none of them is part of the repository."""

import os
from pathlib import Path

import numpy as np

FILES = {
    "imdb": "imdb_train.parquet",
    "yelp_reviews": "yelp_reviews_train.parquet",
    "yelp_sentences": "yelp_sentences_train.parquet",
    "ag_news": "ag_news_train.parquet",
}
BAG_FILES = {"musk1": "musk1_bags.parquet", "protein": "protein_bags.parquet"}


def folder() -> Path:
    """Where the files are."""
    named = os.environ.get("KEYTOKENS_DATA")
    if not named:
        raise SystemExit("benchmarks: KEYTOKENS_DATA is not set. Set it to the folder that holds the parquet files.")
    return Path(named)


def load(name: str, documents: int | None = None) -> tuple[list[str], list[int]]:
    """Texts and labels of one set, in the order of its file: the first so many, or all."""
    from pyarrow import parquet

    columns = parquet.read_table(folder() / FILES[name], columns=["text", "label"])[:documents]
    return columns["text"].to_pylist(), columns["label"].to_pylist()


def load_bags(name: str) -> tuple[list[np.ndarray], np.ndarray]:
    """The bags and labels of one set, from rows with columns label, bag, x0, x1, ..."""
    from pyarrow import parquet

    table = parquet.read_table(folder() / BAG_FILES[name])
    features = [column for column in table.column_names if column not in ("label", "bag")]
    rows = np.column_stack([table[column].to_numpy().astype(float) for column in features])
    bag, label = table["bag"].to_numpy(), table["label"].to_numpy()
    members = [np.flatnonzero(bag == number) for number in np.unique(bag)]
    return [rows[each] for each in members], np.array([label[each[0]] for each in members])
