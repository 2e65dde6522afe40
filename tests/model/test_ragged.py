"""Bags: stacked tokens, softmax over each bag, and one line for each wrong one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax as reference

from keytokens.base.errors import InputError
from keytokens.model.ragged import Bags, log_softmax, softmax


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.floats(0, 1000), st.integers(0, 99))
def test_reductions_and_softmax(sizes, scale, seed):
    rng = np.random.default_rng(seed)
    bags = Bags.of([rng.normal(size=(T, 3)) for T in sizes])
    a = scale * rng.normal(size=len(bags.rows))
    logs = log_softmax(bags, a)
    for i in range(len(bags)):
        part = a[bags.starts[i] : bags.starts[i + 1]]
        np.testing.assert_allclose(logs[bags.starts[i] : bags.starts[i + 1]], reference(part), atol=1e-12)
        assert bags.max(a)[i] == part.max()
        assert bags.argmax(a)[i] == part.argmax()
        assert bags.argmax(np.round(a))[i] == np.round(part).argmax()  # the first of a tie
        np.testing.assert_array_equal(bags[i], bags.rows[bags.bag == i])
    np.testing.assert_allclose(bags.sum(softmax(bags, a)), 1)


def test_an_array_and_a_list_are_the_same():
    X = np.random.default_rng(0).normal(size=(4, 3, 2))
    one, other = Bags.of(X), Bags.of(list(X))
    np.testing.assert_array_equal(one.rows, other.rows)
    assert Bags.of(one) is one
    assert (len(one), one.dim) == (4, 2)
    assert one.chosen([0, 1, 2, 0]).tolist() == [0, 4, 8, 9]


AT, IN_FIT = "Bags.of: `keys", "fit: `X[0]` must"
ONE, TWO = [[1.0]], [[1.0], [2.0]]
REFUSED = [  # what is asked, and the message or its beginning
    (lambda: Bags.of([]), f"{AT}` must hold at least one bag"),
    (
        lambda: Bags.of([[[1.0, 2.0]], ONE]),
        f"{AT}[1]` must have shape (tokens, d), the same d for all bags; saw",
    ),
    (lambda: Bags.of([[1.0, 2.0]]), f"{AT}[0]` must have shape (tokens, d)"),
    (lambda: Bags.of([np.zeros((0, 2))]), f"{AT}[0]` must hold at least one token; saw 'an empty bag'."),
    (lambda: Bags.of([[[1.0, np.nan]]]), f"{AT}[0][0, 1]` must be finite; saw nan."),
    (lambda: Bags.of([[[np.inf, 0.0]]]), f"{AT}[0][0, 0]` must be finite; saw inf."),
    (lambda: Bags.of([[[1e308, 0.0]]]), f"{AT}[0]` must have entries up to 1e+150; saw 1e+308. Scale the vectors."),
    (lambda: Bags.of("ab"), f"{AT}` must be numbers"),
    (lambda: Bags.of(3), f"{AT}` must be numbers"),
    (lambda: Bags.of([[1.0, 2.0]], "fit", "X", "instance"), f"{IN_FIT} have shape (instances, d), the same d for all"),
    (
        lambda: Bags.of([np.zeros((0, 2))], "fit", "X", "instance"),
        f"{IN_FIT} hold at least one instance; saw",
    ),
    (lambda: Bags.of([ONE, TWO]).chosen([0, 3]), "selection: `selection[1]` must be an index below 2, the number of"),
    (lambda: Bags.of([ONE, TWO]).chosen([0, -1]), "selection: `selection[1]` must be an index below 2"),
    (lambda: Bags.of([ONE, TWO]).chosen([0]), "selection: `selection` must be one token index for each of the 2 bags"),
    (lambda: Bags.of([ONE, TWO]).chosen([0.0, 1.0]), "selection: `selection` must be one token index for each of the"),
]


@pytest.mark.parametrize("ask, message", REFUSED)
def test_refusals(ask, message):
    with pytest.raises(InputError) as refused:
        ask()
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)
