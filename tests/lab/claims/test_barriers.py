"""The barrier is about the start; what the claims about it rest on."""

import numpy as np
import pytest

from keytokens.lab.claims.embeddings import barriers
from keytokens.lab.claims.embeddings.data import alternative_loss, barrier, loss_of_selection
from keytokens.lab.claims.embeddings.stages import loss


def test_a_start_is_below_the_barrier():
    """Without following the flow."""
    assert all(barriers._guarded(np.random.default_rng(seed)).is_below for seed in range(100))


# What the claims rest on ---------------------------------------------------------------------------------------------


def test_the_bad_optimum_is_above_the_barrier_and_the_good_one_below():
    bad = barriers._trapped()
    data, b = bad.documents, bad.b
    assert (~bad.kept).sum() == 10
    assert loss_of_selection(data, b, data.important) < alternative_loss(data, b)
    assert bad.run.loss == pytest.approx(alternative_loss(data, b), abs=1e-9)
    assert loss(data, bad.E, bad.start, bad.v) > barrier(data, b)
    good = barriers._trapped(c=0.0)
    assert good.kept.all()
    assert good.run.loss == pytest.approx(loss_of_selection(data, b, data.important), abs=1e-9)


def test_negative_tokens_are_no_neighbours_in_the_bad_optimum():
    """Their score is the larger one, so they must stay off the margin: this is what makes it an optimum."""
    bad = barriers._trapped()
    solution = bad.run.solution
    negative = np.flatnonzero(bad.documents.kinds < 0)
    tight = {loser for _, loser in solution.support_tokens}
    assert not tight & set(negative.tolist())
