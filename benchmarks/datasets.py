"""The labelled text sets that the benchmarks read; none of them is part of the repository."""

import os
from pathlib import Path

FILES = {
    "imdb": "imdb_train.parquet",
    "yelp_reviews": "yelp_reviews_train.parquet",
    "yelp_sentences": "yelp_sentences_train.parquet",
    "ag_news": "ag_news_train.parquet",
}


def load(name: str) -> tuple[list[str], list[int]]:
    """Texts and labels of one set, in the order of its file."""
    from pyarrow import parquet

    columns = parquet.read_table(_folder() / FILES[name], columns=["text", "label"])
    return columns["text"].to_pylist(), columns["label"].to_pylist()


def _folder() -> Path:
    folder = os.environ.get("KEYTOKENS_DATA")
    if not folder:
        raise SystemExit("benchmarks: KEYTOKENS_DATA is not set. Set it to the folder that holds the parquet files.")
    return Path(folder)
