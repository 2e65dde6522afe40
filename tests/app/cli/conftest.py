"""A folder as a user of the command line may have it."""

import shutil
from pathlib import Path

import pytest

import keytokens as kt
from keytokens.io import write_table

from ...corpus import reviews
from ...estimators.bags.planted import planted


@pytest.fixture(scope="session")
def made(tmp_path_factory) -> Path:
    """Tables in every format and in a folder, a model of them and one of bags, and names that cannot be written."""
    place: Path = tmp_path_factory.mktemp("made")
    texts, labels = reviews(150)
    bags, y = planted()
    kt.BagClassifier(random_state=0).fit(bags, y).save(place / "bags")
    for ending in ("csv", "tsv", "jsonl", "parquet"):
        columns = {"id": list(range(150)), "review": texts, "sentiment": labels}
        write_table(str(place / f"reviews.{ending}"), columns)
        bag = {f"x{j}": column for j, column in enumerate(bags[1].T.tolist())}
        write_table(str(place / f"bag.{ending}"), bag)
    write_table(str(place / "in.csv"), {"text": texts[:60], "label": labels[:60]})
    kt.KeyTokenClassifier(random_state=0).fit(texts, labels).save(place / "model")
    (place / "parts").mkdir()
    shutil.copy(place / "in.csv", place / "parts" / "1.csv")
    (place / "file").write_text("a file, not a folder")
    (place / "leads-nowhere").symlink_to("gone/for/good")
    (place / "cut.json" / "model.json").mkdir(parents=True)
    return place


@pytest.fixture
def here(made, tmp_path, monkeypatch) -> Path:
    """The same, as the present folder."""
    place: Path = shutil.copytree(made, tmp_path / "here", symlinks=True)
    monkeypatch.chdir(place)
    return place
