"""The instances that claims and figures know: data of the published experiments, and random problems of the same kind.

Also what claims of several families need: steps of a descent, the gradient flow in their stead far out, gradients by
differences and by complex steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...model.ragged import Bags, Vector
from ...training.loop import run
from ..descent.flow import Flow
from ..descent.stack import on_span
from ..descent.steps import Descent, Point, Step
from ..endings import Endings, run_many
from ..problems.losses import Logistic, MarginLoss
from ..problems.problem import Problem
from ..problems.scores import scores_of
from .max_margin.assumptions import can_win
from .normals import Normals

# of one_bag: the globally and, with third = 0, the locally optimal max-margin direction; starts (0, y) of both
GMM = np.array([-10.0, 100.0]) / 101
LMM = np.array([1.0, 0.0])
STARTS = (1.0, 0.5, 0.0, -0.5, -1.0, -1.5)


def one_bag(third: float) -> Problem:
    """One input, three tokens: Fig 1(a) with third = 0.9, Fig 1(b) with third = 0."""
    return Problem.of(Bags.of([[[-0.1, 1], [1, 0], [0, 0]]]), np.array([1.0, 0.9, third]))


def three_bags() -> Problem:
    """Fig 1(c): three inputs with seven tokens, the first of each the best."""
    x = 0.2 * Normals(0)(3, 7, 3)[:, :, :2].astype(np.float64)
    x[:, 0] += [1, 0]
    x[:, 1:4] += [-1, 1]
    x[:, 4:] += [-0.5, -0.5]
    scores = np.full((3, 7), 0.5)
    scores[:, 0] = 1
    return Problem.of(Bags.of(x), scores.ravel())


def two_scores(C: float, loss: MarginLoss | None = None) -> Problem:
    """Fig 5: two inputs whose good tokens have scores C and 1."""
    keys = Bags.of([[[0, 0], [1, 1]], [[0, 0], [1, -1]]])
    return Problem.of(keys, np.array([0.0, C, 0.0, 1.0]), loss or Logistic())


def two_limits() -> Problem:
    """Fig 8 in spirit: two inputs, two limits (1, 3) and (1, 0)."""
    return Problem.of(Bags.of([[[1, 0], [0, 0]], [[-2, 1], [0, 0]]]), np.array([1.0, 0.0, 1.0, 0.0]))


def joint(third: tuple[float, float]) -> Problem:
    """Fig 3: three inputs, each with a zero token and one other."""
    x = Bags.of([[[0, 0], [1, 1]], [[0, 0], [1, -1]], [[0, 0], third]])
    return Problem.joint(np.array([1.0, -1.0, 1.0]), x, x)


def tied(seed: int) -> Problem:
    """Four inputs with five random keys in twenty dimensions; in each one best token, all others with one score."""
    keys = np.random.default_rng(seed).normal(size=(4, 5, 20)) / np.sqrt(20)
    return Problem.of(Bags.of(keys), np.tile(np.eye(5)[0], 4))


def spheres(seed: int, d: int) -> Problem:
    """Fig 9: four inputs, six tokens, values (which are the keys) and head uniform on the sphere, random labels."""
    rng = np.random.default_rng(seed)
    x, v = rng.normal(size=(4, 6, d)), rng.normal(size=d)
    bags = Bags.of(x / np.linalg.norm(x, axis=-1, keepdims=True))
    return Problem.of(bags, scores_of(rng.choice([-1, 1], 4), bags, v / np.linalg.norm(v)))


def few_tokens() -> Problem:
    """Two inputs of three tokens in the plane, about (-1, 0) and (1, 0), labels +1; seed 1, as published."""
    draw = Normals(1)
    v, x, z = draw(2), np.float32(0.3) * draw(2, 3, 2), draw(2, 2)
    x[:, :, 0] += np.array([[-1], [1]], np.float32)
    return _in_plane(v, x, z)


def more_tokens() -> Problem:
    """Two inputs of five tokens, the first at (1, 0.5) or (1, -0.5), the others about (-1, 0); seed 3, as published."""
    draw = Normals(3)
    v, x, z = draw(2), np.float32(0.5) * draw(2, 5, 2), draw(2, 2)
    x[:, 0] = [[1, 0.5], [1, -0.5]]
    x[:, 1:, 0] -= np.float32(1)
    return _in_plane(v, x, z)


def _in_plane(v: NDArray[Any], x: NDArray[Any], z: NDArray[Any]) -> Problem:
    values = Bags.of(x.astype(np.float64))
    units = z / np.linalg.norm(z, axis=1, keepdims=True)
    return Problem.cross(values, units.astype(np.float64), scores_of(np.ones(2), values, v / np.linalg.norm(v)))


def two_inputs() -> Problem:
    """Published coordinates: three tokens each in the plane, labels 1 and -1, the first token is the query."""
    x = Bags.of([[[-2.7, 1.2], [1.4, 2.1], [1.3, -0.1]], [[0.4, -2.2], [-1.1, -0.4], [0.9, 0.1]]])
    return Problem.cross_joint(x, x.rows[x.starts[:-1]], np.array([1.0, -1.0]))


def on_sphere(rng: np.random.Generator, *shape: int) -> Vector:
    """Vectors of length 1, uniform.

    >>> np.linalg.norm(on_sphere(np.random.default_rng(0), 2, 3, 4), axis=-1).round(12).tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    x = rng.normal(size=shape)
    return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))


def cross_spheres(rng: np.random.Generator, n: int, T: int, d: int, self_attention: bool = False) -> Problem:
    """Head, tokens and queries uniform on the sphere, labels +-1; or the first token of each input as its query."""
    v, x, z = on_sphere(rng, d), on_sphere(rng, n, T, d), on_sphere(rng, n, d)
    values = Bags.of(x)
    return Problem.cross(values, x[:, 0] if self_attention else z, scores_of(rng.choice([-1, 1], n), values, v))


def sphere_ends(n: int, T: int, d: int, seeds: Iterable[int], steps: int = 1200, length: float = 0.2) -> Endings:
    """What becomes of normalised descent on W from 0 on random problems (`cross_spheres`), one for each seed."""
    problems = (cross_spheres(np.random.default_rng([n, T, d, seed]), n, T, d) for seed in seeds)
    return run_many((on_span(as_one_long_p(one)) for one in problems), steps=steps, eta=length)


def linear_start(rng: np.random.Generator, d: int, e: int) -> Vector:
    """Where a linear layer of e inputs begins by default: uniform between +-1/sqrt(e)."""
    return rng.uniform(-1, 1, (d, e)) / np.sqrt(e)


def self_attention(rng: np.random.Generator, n: int, T: int, d: int) -> Problem:
    """Tokens on the sphere, the first of each input its query; one best token an input, the others of one score."""
    while True:
        values = Bags.of(on_sphere(rng, n, T, d))
        best = rng.integers(T, size=n)
        scores = np.where(np.arange(T) == best[:, None], 1.0, 0.0).ravel()
        problem = Problem.cross(values, values.rows[values.starts[:-1]], scores)
        if can_win(as_one_long_p(problem)):
            return problem


def as_one_long_p(problem: Problem) -> Problem:
    """W as one long p."""
    return Problem.of(problem.keys, problem.scores, problem.loss)


FAR = 1e6  # a norm that a flow reaches, and no descent


def flow_path(problem: Problem, start: Vector, norm: float, growth: float = 1e3) -> list[Point]:
    """The gradient flow up to a norm, in long pieces; the path attracts, so its end has more digits than its steps."""
    seen: list[Point] = []
    run(Flow(problem, norm, growth=growth, tolerance=1e-4, most_evaluations=1000), start, 100, seen.append)
    return seen


def descent_steps(problem: Problem, rule: Step, start: Vector, steps: int) -> list[Point]:
    seen: list[Point] = []
    run(Descent(problem, rule), start, steps, seen.append)
    return seen


def gaps_along(problem: Problem, seen: list[Point]) -> Vector:
    """L - L* along a run, with all digits."""
    return np.array([float(problem.gap(state.reading).plain) for state in seen])


def longest_difference(problem: Problem) -> float:
    """D, the length of the longest k_best - k_t."""
    keys = problem.keys
    best = keys.chosen(keys.argmax(problem.scores))
    return float(np.linalg.norm(keys.rows - keys.spread(keys.rows[best]), axis=1).max())


EPS = float(np.finfo(np.float64).eps)


def worst(*parts: Any) -> float:
    """The largest of numbers, and nan if one of them is: `max` may look past that.

    >>> worst(1.0, float("nan")), max(1.0, float("nan"))
    (nan, 1.0)
    """
    return float(np.max(np.array(parts)))


def literal_scores(tokens: Iterable[Any], E: Vector, p: Vector, v: Vector) -> Vector:
    """f of each document, position by position: softmax(p'E_X)E_X v; of complex numbers, too."""
    found = []
    for row in tokens:
        a, b = E[row] @ p, E[row] @ v
        weight = np.exp(a - a.real.max())
        found.append(weight @ b / weight.sum())
    return np.array(found)


def literal_loss(margins: Vector) -> Any:
    """log(1 + exp(-m)), of complex numbers, too."""
    low = np.where(margins.real > 0, margins, -margins)
    return np.log1p(np.exp(-low)) + np.where(margins.real > 0, 0, -margins)


def complex_slopes(value: Callable[[Any], Any], at: Vector) -> Vector:
    """The gradient of an analytic function by complex steps: Im f(x + ih)/h, where nothing cancels.

    >>> complex_slopes(lambda x: (x**4).sum(), np.array([[1.0, -2.0]])).tolist()
    [[4.0, -32.0]]
    """
    out, h = np.zeros(at.shape), 1e-100
    for place in np.ndindex(at.shape):
        moved = at.astype(np.complex128)
        moved[place] += 1j * h
        out[place] = value(moved).imag / h
    return out


def rounding(E: Vector, p: Vector, v: Vector, terms: float) -> float:
    """How much rounding may change attention, values and forces, relative to the largest value, on two roads together.

    A product of d numbers is off by d eps of its absolute terms, so a logit by (d + 2) eps A with A the largest
    |E_s|'|p|, its exponential by as much of itself, a sum of n such terms by n eps more; a force by the error of its
    margin. First order in eps.
    """
    A, B = float((np.abs(E) @ np.abs(p)).max()), float((np.abs(E) @ np.abs(v)).max())
    return 2 * EPS * (1 + B) * (2 * (len(p) + 2) * A + len(p) + 2 * terms + 10)
