"""Descent in plain arithmetic: its gradients by differences, its paths beside exact and published ones."""

import numpy as np
import pytest
from scipy.special import softmax

from keytokens.base.errors import InputError
from keytokens.lab.claims.instances import GMM, STARTS, joint, one_bag, two_scores
from keytokens.lab.descent import Descent, Normalised, run
from keytokens.lab.descent.published import SLOPES, PlainProblem, published

from ..differences import central_differences

VALUES = {
    "logistic": lambda x: np.logaddexp(0, -x),
    "exponential": lambda x: np.exp(-x),
    "correlation": lambda x: -x,
}
RNG = np.random.default_rng(0)


def draw(*shape):
    return RNG.normal(size=shape)


KEYS, LABELS = draw(3, 4, 5), np.array([1.0, -1.0, 1.0])
KINDS = {
    "p": (PlainProblem(KEYS, draw(3, 4)), (draw(5),)),
    "vp": (PlainProblem(KEYS, values=draw(3, 4, 2), labels=LABELS), (draw(2), draw(5))),
    "W": (PlainProblem(KEYS, draw(3, 4), queries=draw(3, 6)), (draw(5, 6),)),
    "KQ": (PlainProblem(KEYS, draw(3, 4), queries=draw(3, 6), penalty=0.1), (draw(5, 2), draw(6, 2))),
    "ReLU": (PlainProblem(KEYS, values=KEYS, labels=LABELS, queries=draw(3, 5), relu=draw(5, 4)), (draw(5, 5),)),
}


def loss_of(problem, blocks):
    """By the definition, bag by bag."""
    margins = []
    for i, keys in enumerate(problem.keys):
        if problem.queries is None:
            toward = blocks[-1]
        else:
            toward = (blocks[0] if len(blocks) == 1 else blocks[0] @ blocks[1].T) @ problem.queries[i]
        s = softmax(keys @ toward)
        if problem.scores is not None:
            margins.append(s @ problem.scores[i])
        else:
            r = s @ problem.values[i]
            head = np.maximum(problem.relu.T @ r, 0).sum() if problem.relu is not None else r @ blocks[0]
            margins.append(problem.labels[i] * head)
    size = sum(np.sum(block**2) for block in blocks)
    return float(np.mean(VALUES[problem.loss](np.array(margins))) + problem.penalty * size)


@pytest.mark.parametrize("loss", SLOPES)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_the_loss(kind, loss):
    problem, blocks = KINDS[kind]
    problem = PlainProblem(**{**vars(problem), "loss": loss})
    for k, found in enumerate(problem.gradients(blocks)):
        central = central_differences(lambda x, k=k: loss_of(problem, (*blocks[:k], x, *blocks[k + 1 :])), blocks[k])
        np.testing.assert_allclose(found, central, rtol=1e-7, atol=1e-10)  # differences of order h^4, h = 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_a_stack_of_problems_runs_as_each_of_them(kind):
    problem, blocks = KINDS[kind]
    arrays = {name: np.stack([x, x[::-1]]) for name, x in vars(problem).items() if isinstance(x, np.ndarray)}
    twice = PlainProblem(**{**vars(problem), **arrays})
    one = {name: x[1] for name, x in arrays.items()}
    several = published(twice, [np.stack([x, x]) for x in blocks], 30, dtype="float64")[0]
    alone = published(PlainProblem(**{**vars(problem), **one}), blocks, 30, dtype="float64")[0]
    for many, single in zip(several, alone, strict=True):
        np.testing.assert_allclose(many[1], single, rtol=1e-9)


def fixed(problem):
    n = len(problem.keys)
    return PlainProblem(problem.keys.rows.reshape(n, -1, 2), problem.scores.reshape(n, -1), loss=problem.loss.name)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 3e-5), ("float64", 1e-12)])
def test_before_saturation_all_is_as_exact(dtype, tolerance):
    problem, start = one_bag(0.9), np.array([0.0, 1.0])
    exact = run(Descent(problem, Normalised(0.1)), start, 50).state.p
    (found,) = published(fixed(problem), [start], 50, dtype=dtype)[0]
    assert found.dtype == dtype
    np.testing.assert_allclose(found, exact, atol=tolerance)  # 50 steps, at a distance of 6, by the unit of rounding


# the notebooks keep the point before each of 1,000 steps, so their last one is after 999


def test_one_input_ends_as_published():
    """The whole runs of the published notebook under its own library: norms and cos of six starts."""
    starts = np.array([[0.0, y] for y in STARTS])
    problem = PlainProblem(np.repeat(one_bag(0.9).keys.rows[None, None], 6, 0), np.tile([1.0, 0.9, 0.9], (6, 1, 1)))
    (p,) = published(problem, [starts], 999, floor=1e-9)[0]
    size = np.linalg.norm(p, axis=1)
    np.testing.assert_allclose(size, [15.7047, 15.7031, 15.7013, 15.6097, 15.6065, 15.6030], atol=0.02)
    np.testing.assert_allclose((p @ GMM / np.linalg.norm(GMM) / size)[0], 0.9355, atol=1e-3)


@pytest.mark.parametrize(
    "third, dtype, v, p",
    [
        ((0.5, 1.0), "float32", (0.2219, 25.0204), (22.2093, 5.5731)),
        ((0.5, 1.5), "float32", (0.0, 24.6392), (20.6508, 3.8889)),
        ((0.5, 1.0), "float64", (0.2219, 25.0204), (34.5101, 8.2896)),
    ],
)
def test_head_and_attention_end_as_published(third, dtype, v, p):
    problem = joint(third)
    x = problem.keys.rows.reshape(3, 2, 2)
    plain = PlainProblem(x, values=x, labels=problem.labels)
    blocks = published(plain, [[-1, 0], [0, -1]], 999, floor=(1e-9, 1e-19), dtype=dtype)[0]
    np.testing.assert_allclose(blocks[0], v, atol=1e-3)
    np.testing.assert_allclose(blocks[1], p, atol=1e-3)


def test_the_lean_of_a_loss_is_lost_in_single_precision():
    ends = [
        published(fixed(two_scores(10.0)), [[0, 0]], floor=1e-9, dtype=dtype)[0][0] for dtype in ("float32", "float64")
    ]
    np.testing.assert_allclose([p[1] for p in ends], [-0.055, -3.192], atol=1e-3)


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"dtype": "float16"}, "`dtype` must be one of float32, float64"),
        ({"steps": -1}, "`steps` must be"),
        ({"eta": 0.0}, "`eta` must be"),
        ({"steps": 5, "at": [6]}, "`at` must be numbers of steps from 0 to 5"),
    ],
)
def test_refusals(settings, said):
    problem, start = KINDS["p"]
    with pytest.raises(InputError, match=said):
        published(problem, start, **settings)


def test_unknown_loss_is_refused():
    with pytest.raises(InputError, match="`loss` must be one of logistic"):
        published(PlainProblem(KEYS, draw(3, 4), loss="hinge"), [draw(5)])
