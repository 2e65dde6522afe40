"""The exceptions and the one wording of a refusal."""

import numpy as np
import pytest

from keytokens.base import errors
from keytokens.base.errors import DataError, InputError, KeyTokensError, MissingExtra, ModelError, refusal, shorten


@pytest.mark.parametrize(
    "error, parents",
    [
        (InputError, (KeyTokensError, ValueError)),
        (DataError, (InputError, ValueError)),
        (ModelError, (KeyTokensError,)),
        (MissingExtra, (KeyTokensError, ImportError)),
    ],
)
def test_the_tree(error, parents):
    assert all(issubclass(error, parent) for parent in parents)
    assert not issubclass(ModelError, ValueError)
    assert issubclass(error, errors.KeyTokensError)


def test_refusal_with_and_without_a_cure():
    assert str(refusal("fit", "dim", "be even", 3, "use 4")) == "fit: `dim` must be even; saw 3. Use 4."
    assert str(refusal("fit", "dim", "be even", "x")) == "fit: `dim` must be even; saw 'x'."
    assert type(refusal("fit", "dim", "be even", 3)) is InputError


@pytest.mark.parametrize(
    "seen", [np.zeros((40, 40)), "a\nb" * 100, list(range(1000)), {"k": np.eye(3)}], ids=lambda x: type(x).__name__
)
def test_a_message_is_one_line(seen):
    message = str(refusal("fit", "x", "be small", seen))
    assert "\n" not in message
    assert len(message) < 120


@pytest.mark.parametrize("size", [0, 1, 76, 77, 78, 79, 200])
def test_shorten_keeps_its_limit(size):
    text = shorten("x" * size)
    assert len(text) == min(size + 2, 80)
    assert text.endswith("..." if size > 78 else "x'" if size else "''")
    assert len(shorten("x" * size, 20)) <= 20
