"""Tiny models whose explanations the tests render."""

import pytest

from keytokens import KeyTokenClassifier, Prior

GOOD = ["a great film", "great acting and a fine plot", "fine, really great <b>fun</b>", "good good good", "很 好 看"]
BAD = ["a dull film", "dull acting and a poor plot", "poor, really dull & sad", "bad bad bad", "不 好 看"]
ODD = ["an odd film", "odd acting and a strange plot", "strange, really odd 😀", "weird weird weird", "奇 怪"]


def fitted(labels: list[object], **options: object) -> KeyTokenClassifier:
    """A model that knows every token of a handful of texts, one group of them a label."""
    groups = [GOOD, BAD, ODD][: len(labels)]
    texts = [text for group in groups for text in group]
    y = [label for label, group in zip(labels, groups, strict=True) for _ in group]
    return KeyTokenClassifier(ngrams=(1, 2), min_df=1, **options).fit(texts, y)


@pytest.fixture(scope="session")
def models() -> dict[str, KeyTokenClassifier]:
    return {
        "two": fitted(["good", "bad"]),
        "two, no sink": fitted(["good", "bad"], prior=Prior(sink=0)),
        "three": fitted(["good", "bad", "odd"]),
        "three, no sink": fitted(["good", "bad", "odd"], prior=Prior(sink=0)),
        "integers": fitted([1, 0, 7]),
        "booleans": fitted([True, False]),
        "hostile labels": fitted(["<script>alert('x')</script>", '"&\x1b[31m\n']),
    }
