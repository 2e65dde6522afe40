"""The front door: what it makes is what the rooms behind it make, and nonsense is refused in one line."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from keytokens import lab
from keytokens.base.errors import InputError
from keytokens.lab.descent import Descent, Growing, MirrorDescent, Normalised, Plain, Polyak, Status, run
from keytokens.lab.problems.geometry import misalignment
from keytokens.lab.problems.problem import Problem as Inner
from keytokens.lab.problems.scores import scores_of
from keytokens.lab.svm import matrix_problem, solve_lq, solve_matrix
from keytokens.model.ragged import Bags

ONE, APART, TIED = [[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]], [[1.0, 0.9, 0.0]], [[1.0, 0.9, 0.9]]
STARTS = [[0.0, y] for y in (1.0, 0.5, 0.0, -0.5, -1.0, -1.5)]
seeds = st.integers(0, 10_000)


def drawn(seed, n=3, T=4, d=5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, T, d)), rng.choice([-1.0, 1.0], n), rng.normal(size=d)


def gradient(problem, blocks):
    blocks = tuple(blocks)
    return [down.plain for down in problem.inner.descent(problem.inner.read(blocks), blocks)]


def differences(value, blocks):
    found, h = [], 1e-5
    for b, block in enumerate(blocks):
        slopes = np.empty(block.shape)
        for place in np.ndindex(block.shape):
            ends = []
            for sign in (1, -1):
                moved = [x.copy() for x in blocks]
                moved[b][place] += sign * h
                ends.append(value(*moved))
            slopes[place] = (ends[1] - ends[0]) / (2 * h)
        found.append(slopes)
    return found


def loss_of(logits, f, labels):
    """mean log(1 + exp(-y f(attention))), as it is written."""
    s = np.exp(logits - logits.max(axis=1, keepdims=True))
    s /= s.sum(axis=1, keepdims=True)
    return np.mean(np.log1p(np.exp(-labels * f(s))))


# Each choice of what is trained is the loss as it is written, by differences


@settings(max_examples=10)
@given(seeds)
def test_every_choice_has_the_loss_and_the_gradient_of_its_formula(seed):
    X, labels, v = drawn(seed)
    rng = np.random.default_rng(seed + 1)
    W, z, u = rng.normal(size=(3, 5)), rng.normal(size=(3, 2)), rng.normal(size=3)
    counts, E = rng.integers(0, 3, (4, 6)) + np.eye(4, 6, dtype=int), rng.normal(size=(6, 3))
    y = np.array([1.0, -1, -1, 1])
    fixed = lambda s: np.einsum("it,itd,d->i", s, X, v)  # noqa: E731
    every = lab.Problem(counts, y, v=u, trains="E", loss="exponential")
    assert every.read(E).value == pytest.approx(np.exp(-y * (counts / counts.sum(axis=1)[:, None] @ (E @ u))).mean())
    tried = [
        (lab.Problem(X, labels, v=v), (v,), lambda p: loss_of(X @ p, fixed, labels)),
        (lab.Problem(X, labels, v=v, W=W), (u,), lambda p: loss_of(X @ W.T @ p, fixed, labels)),
        (
            lab.Problem(X, labels, trains="vp"),
            (v, rng.normal(size=5)),
            lambda v, p: loss_of(X @ p, lambda s: np.einsum("it,itd,d->i", s, X, v), labels),
        ),
        (
            lab.Problem(X, labels, v=v, trains="W"),
            (rng.normal(size=(5, 5)),),
            lambda W: loss_of(np.einsum("itd,de,ie->it", X, W, X[:, 0]), fixed, labels),
        ),
        (
            lab.Problem(X, labels, v=v, trains="KQ", queries=z, rank=1),
            (rng.normal(size=(5, 1)), rng.normal(size=(2, 1))),
            lambda K, Q: loss_of(np.einsum("itd,de,ie->it", X, K @ Q.T, z), fixed, labels),
        ),
        (
            lab.Problem(X, labels, head=lab.Quadratic(v, 0.3), trains="W", queries=z),
            (rng.normal(size=(5, 2)),),
            lambda W: loss_of(
                np.einsum("itd,de,ie->it", X, W, z),
                lambda s: lab.Quadratic(v, 0.3).value(np.einsum("it,itd->id", s, X)),
                labels,
            ),
        ),
        (
            lab.Problem(counts, y, v=u, p=u[::-1], trains="E"),
            (E,),
            lambda E: loss_of(E @ u[::-1] + np.log(np.where(counts, counts, 1e-300)), lambda s: s @ (E @ u), y),
        ),
    ]
    for problem, blocks, value in tried:
        assert problem.shapes == tuple(block.shape for block in blocks)
        assert problem.read(*blocks).value == pytest.approx(value(*blocks), rel=1e-10)
        for mine, numeric in zip(gradient(problem, blocks), differences(value, blocks), strict=True):
            assert_allclose(mine, numeric, atol=1e-8)


def test_lists_of_arrays_and_every_loss():
    X = [[[1.0, 0.0], [0.0, 1.0]], [[0.5, 2.0]]]
    problem = lab.Problem(X, [1, -1], v=[1.0, 1.0], loss="exponential")
    assert [part.tolist() for part in problem.scores] == [[1.0, 1.0], [-2.5]]
    assert problem.read([0.0, 0.0]).value == pytest.approx((np.exp(-1) + np.exp(2.5)) / 2)
    assert lab.Problem(X, [1, -1], v=[1.0, 1.0], loss=lab.Correlation()).read([0.0, 0.0]).value == pytest.approx(0.75)


# What training should find


def test_optima_and_their_directions():
    found = lab.Problem(ONE, scores=APART).optimal()
    assert [one.selection.tolist() for one in found.every] == [[0], [1]]
    assert found.best.selection.tolist() == [0]
    assert_allclose(found.best.solution.p, np.array([-10, 100]) / 101, atol=1e-12)
    assert len(lab.Problem(ONE, scores=TIED).optimal().every) == 1
    nothing = lab.Problem([[[1.0], [0.0], [2.0]]], scores=[[1.0, 0.5, 0.0]]).optimal()
    assert nothing.best is None


def test_max_margin_problems_in_every_norm():
    X, labels, v = drawn(0)
    problem, z = lab.Problem(X, labels, v=v, trains="W"), X[:, 0]
    best = Bags.of(X).argmax(scores_of(labels, X, v))
    assert_allclose(problem.svm().p, solve_matrix(matrix_problem(X, z, best)).p)
    assert problem.svm(norm="nuclear").gap < 1e-8
    assert problem.svm(norm=1.5).p.shape == (25,)
    long = Inner.cross(X, z, scores_of(labels, X, v)).keys
    assert_allclose(problem.svm([0, 1, 0], 3.0).p, solve_lq(lab.MarginProblem.from_selection(long, [0, 1, 0]), 3.0).p)


def test_paths_in_balls():
    (near, far) = lab.Problem(ONE, scores=APART).path([1.0, 50.0])
    assert np.linalg.norm(near.p) == pytest.approx(1)
    assert misalignment(far.p, [-10, 100]) < 1e-4
    X = [[[1.0, 0.0], [0.0, 1.0]], [[-1.0, 0.0], [0.0, 1.0]]]
    assert len(lab.Problem(X, [1, -1], trains="vp").path([5.0], ratio=0.5, starts=2)[0].blocks) == 2
    under = lab.Problem([[[1.0], [0.0]]], [1], head=lab.Tanh(np.ones(1)))
    assert under.path([10.0], starts=1)[0].distance == 0
    assert under.svm().p.tolist() == [1.0]


# Training


@pytest.mark.parametrize(
    "method, rule",
    [("plain", Plain(0.3)), ("normalised", Normalised(0.3)), ("growing", Growing(0.3)), ("polyak", Polyak(0.3))],
)
def test_methods_are_those_of_the_room_of_descents(method, rule):
    problem = lab.Problem(ONE, scores=APART)
    found = problem.descend(method, 50, 0.3, start=[0.0, 1.0], record=[0, 10])
    state = run(Descent(problem.inner, rule), np.array([0.0, 1.0]), 50).state
    assert found.p.tolist() == state.p.tolist()
    assert found["t"].tolist() == [0, 10, 50]
    assert found.status is Status.OUT_OF_STEPS


def test_mirror_steps_and_norms_to_stop_at():
    problem = lab.Problem(ONE, scores=APART)
    state = run(MirrorDescent(problem.inner, Normalised(0.1), q=3.0), np.array([0.0, 1.0]), 50).state
    assert problem.descend("mirror", 50, start=[0.0, 1.0], q=3.0).p.tolist() == state.p.tolist()
    assert problem.descend(steps=1000, norm=5.0).status is Status.FAR_ENOUGH
    assert [one.status for one in problem.descend(steps=1000, norm=5.0, starts=STARTS)] == [Status.FAR_ENOUGH] * 6


@pytest.mark.parametrize("method, options", [("plain", {}), ("normalised", {"floor": 1e-6}), ("mirror", {"q": 1.75})])
def test_several_starts_together_are_each_by_itself(method, options):
    X, labels, v = drawn(3)
    for problem in (lab.Problem(X, labels, v=v), lab.Problem(X, labels, v=v, trains="W")):
        rng = np.random.default_rng(0)
        starts = [0.3 * rng.normal(size=problem.shapes[0]) for _ in range(3)]
        together = problem.descend(method, 60, 0.2, starts=starts, record=[0, 20], **options)
        for start, found in zip(starts, together, strict=True):
            alone = problem.descend(method, 60, 0.2, start=start, record=[0, 20], **options)
            assert_allclose(found.p, alone.p, atol=1e-9)
            assert found["t"].tolist() == alone["t"].tolist() == [0, 20, 60]
            assert_allclose(found["loss"], alone["loss"], atol=1e-12)


def test_several_starts_of_the_factors_too():
    X, labels, v = drawn(3)
    problem = lab.Problem(X, labels, v=v, trains="KQ", rank=2)
    starts = [problem.start(seed) for seed in (1, 2)]
    for start, found in zip(starts, problem.descend(steps=20, starts=starts), strict=True):
        alone = problem.descend(steps=20, start=start)
        assert all(np.allclose(a, b, atol=1e-9) for a, b in zip(found.blocks, alone.blocks, strict=True))
        assert_allclose(found["norm"], alone["norm"])


def test_bags_of_several_sizes_go_one_by_one():
    problem = lab.Problem([[[1.0, 0.0], [0.0, 1.0]], [[0.5, 2.0], [1.0, 1.0], [0.0, 0.0]]], [1, -1], v=[1.0, 0.5])
    ends = [found.p for found in problem.descend(steps=30, starts=[[0.0, 0.0], [1.0, 0.0]])]
    assert_allclose(ends[1], problem.descend(steps=30, start=[1.0, 0.0]).p)


def test_the_flow_goes_where_descent_cannot():
    problem = lab.Problem(ONE, scores=APART)
    found = problem.flow(1e8)
    assert found.status is Status.FAR_ENOUGH
    assert found["norm"][-1] == pytest.approx(1e8)
    assert found.distance(problem.svm().p)[-1] < 1e-15
    assert problem.descend("plain", 2000, 1.0)["norm"][-1] < 10


def test_factors_begin_away_from_zero_and_their_direction_is_that_of_the_product():
    X, labels, v = drawn(1)
    problem = lab.Problem(X, labels, v=v, trains="KQ")
    found = problem.descend(steps=20)
    K, Q = found.blocks
    assert_allclose(found.p, K @ Q.T)
    assert found.correlation(K @ Q.T)[-1] == pytest.approx(1)
    assert found["norm"][-1] == pytest.approx(np.linalg.norm(K @ Q.T))
    assert problem.start()[0].any()
    assert not np.array_equal(problem.start(1)[0], problem.start()[0])


def test_published_arithmetic():
    """Figure 1a from (0, 1): single precision stops at 15.7 with a cosine of .935, double at 21.5 with .9956."""
    problem = lab.Problem(ONE, scores=TIED)
    target, start = problem.svm().p, [0.0, 1.0]
    single, double = (problem.descend(start=start, dtype=kind, floor=1e-9) for kind in ("float32", "float64"))
    assert single["norm"][-1] == pytest.approx(15.7, abs=0.05)
    assert single.correlation(target)[-1] == pytest.approx(0.935, abs=5e-4)
    assert double["norm"][-1] == pytest.approx(21.5, abs=0.05)
    assert double.correlation(target)[-1] == pytest.approx(0.9956, abs=5e-5)
    exact = problem.descend(start=start)
    assert exact.correlation(target)[-1] > 0.999
    early = [problem.descend(steps=50, start=start, dtype=kind).p for kind in ("float32", "float64")]
    assert_allclose(early[0], early[1], atol=1e-4)
    X, labels, v = drawn(2)
    for problem in (lab.Problem(X, labels, v=v, trains="KQ"), lab.Problem(X, labels, trains="vp")):
        both = [problem.descend(steps=20, dtype=kind, start=problem.start(1)).blocks for kind in ("float64", None)]
        assert all(np.allclose(a, b, atol=1e-9) for a, b in zip(*both, strict=True))


# Between p and W


@settings(max_examples=20)
@given(seeds, st.lists(st.floats(0.01, 3.0), min_size=3, max_size=10))
def test_descent_on_p_is_descent_on_the_matrix(seed, steps):
    """W(t) = p(t) u'/|u|^2 for steps eta_t / |u|^2, whatever the steps."""
    X, labels, v = drawn(seed)
    u = np.random.default_rng(seed).normal(size=2)
    problem = lab.Problem(X, labels, v=v)
    matrix = problem.embed(u)
    p, ends = v / 2, []
    for one, scale, start in ((problem, 1.0, p), (matrix, u @ u, matrix.from_p(p))):
        rule = Plain(lambda t, scale=scale: steps[t - 1] / scale)
        ends.append(run(Descent(one.inner, rule), start, len(steps)).state.p)
    assert_allclose(ends[1], matrix.from_p(ends[0]), atol=1e-9 * (1 + np.linalg.norm(ends[0])))
    assert_allclose(matrix.to_p(ends[1]), ends[0], atol=1e-9 * (1 + np.linalg.norm(ends[0])))
    assert_allclose(matrix.read(matrix.from_p(p)).logits, problem.read(p).logits)


# Basins, batches, pictures


def test_which_start_ends_where():
    problem = lab.Problem(ONE, scores=APART)
    found = problem.basins(STARTS)
    assert found.columns["selection"] == [(0,)] * 4 + [(1,)] * 2
    assert found.is_global.tolist() == [True] * 4 + [False] * 2
    assert found.is_local.all()
    assert found.distance.max() < 1e-6
    assert {status.name for status in found.statuses} == {"FAR_ENOUGH"}
    quick = problem.basins(STARTS, method="normalised")
    assert quick.columns["selection"] == found.columns["selection"]
    assert quick.is_local.all()
    frame = problem.basins(4, size=2.0, seed=1).to_frame()
    assert len(frame) == 4
    assert frame.locally_optimal.all()
    opposite = lab.Problem([[[1.0], [0.0]], [[-1.0], [0.0]]], scores=[[1.0, 0.0], [2.0, 0.0]])
    undecided = opposite.basins([[0.5], [-2.0]], norm=50.0)
    assert not undecided.saturated.any()
    assert {status.name for status in undecided.statuses} == {"STATIONARY"}
    flat = lab.Problem([[[1.0], [2.0]]], scores=[[1.0, 1.0]])
    assert [one.status for one in flat.descend(steps=3, starts=[[0.0], [1.0]])] == [Status.STATIONARY] * 2


def test_pictures_and_frames():
    pytest.importorskip("matplotlib")
    problem = lab.Problem(ONE, scores=APART)
    runs = problem.descend(steps=30, starts=STARTS)
    drawing = problem.plot(runs, problem.svm().p)
    assert len(drawing.axes) == 3
    x, y = drawing.axes[0].lines[0].get_data()
    assert (x[-1], y[-1]) == pytest.approx(tuple(runs[0].p))
    assert len(lab.Problem(*drawn(0)[:2], v=drawn(0)[2]).descend(steps=5).plot().axes) == 2
    basins = problem.plot_basins(2.0, 3)
    assert [text.get_text() for text in basins.axes[0].get_legend().get_texts()] == ["tokens (0,)", "tokens (1,)"]
    X, labels, v = drawn(0)
    matrix = lab.Problem(X, labels, v=v, trains="W")
    best = matrix.optimal().best
    flat = matrix.flow(1e3).correlation(best.direction)
    assert_allclose(flat, matrix.flow(1e3).correlation(best.direction.reshape(5, 5)))
    frame = runs[0].to_frame()
    assert frame.t.tolist() == runs[0]["t"].tolist()
    assert "direction" not in frame


# Refusals

X3, Y3, V3 = drawn(0)
P, VP, W = lab.Problem(ONE, scores=APART), lab.Problem(X3, Y3, trains="vp"), lab.Problem(X3, Y3, v=V3, trains="W")
REFUSED = [
    (lambda: lab.Problem(X3, Y3), "Problem: `scores` must be given, or one of v and head; saw 'none of them'"),
    (lambda: lab.Problem(X3, Y3, v=V3, scores=Y3), "Problem: `scores` must be given, or one of v and head"),
    (lambda: lab.Problem(X3, Y3, scores=Y3), "Problem: `labels` must be left out where scores are given"),
    (lambda: lab.Problem(X3, v=V3), "Problem: `labels` must be given: -1 or \\+1 for each input"),
    (lambda: lab.Problem(X3, Y3, v=V3, trains="Q"), "Problem: `trains` must be one of 'p', 'W', 'vp', 'KQ', 'E'"),
    (lambda: lab.Problem(X3, Y3, v=V3, queries=X3[:, 0]), 'Problem: `queries` must be left out where trains="p"'),
    (lambda: lab.Problem(X3, Y3, v=V3, trains="vp"), 'Problem: `v` must be left out where trains="vp"'),
    (lambda: lab.Problem(X3, Y3, v=V3, W=np.eye(5), keys=X3), "Problem: `keys` must be left out where W makes them"),
    (lambda: lab.Problem(X3, Y3, v=V3, W=np.eye(3)), "Problem: `W` must be a matrix of numbers, any number by 5"),
    (lambda: lab.Problem(X3, Y3, v=V3, loss="hinge"), "Problem: `loss` must be one of 'logistic'"),
    (lambda: lab.Problem(X3, Y3, v=V3, loss=3), "Problem: `loss` must be a loss of a margin"),
    (lambda: lab.Problem([[1, 0]], [1], trains="E"), "Problem: `v` must be given: the head"),
    (lambda: lab.Problem("x", [1], v=[1.0], trains="E"), "Problem: `counts` must be a matrix of counts"),
    (lambda: lab.Problem(None, Y3, v=V3), "Problem: `X` must be numbers"),
    (lambda: VP.scores, "Problem.scores: `problem` must have scores that training does not move"),
    (lambda: VP.optimal(), "Problem.optimal: `problem` must have scores"),
    (lambda: VP.basins(), "Problem.basins: `problem` must have scores"),
    (lambda: P.basins(0), "Problem.basins: `starts` must be a whole number of at least 1"),
    (lambda: P.svm(norm="nuclear"), "Problem.svm: `norm` must be a number where no matrix is trained"),
    (lambda: P.svm(norm=1.0), "Problem.svm: `norm` must be a finite number above 1"),
    (lambda: P.descend("adam"), "Problem.descend: `method` must be one of 'plain'"),
    (lambda: P.descend("plain", floor=1e-3), "Problem.descend: `floor` must be 0 where steps are not normalised"),
    (lambda: P.descend(starts=[]), "Problem.descend: `starts` must be a list of starts"),
    (lambda: P.descend(start=[0.0, 1.0], starts=STARTS), "Problem.descend: `starts` must be a list of starts"),
    (lambda: P.descend(starts=[[1.0]]), "Problem.descend: `starts` must be a vector of 2 numbers"),
    (lambda: P.descend(start=[1.0]), "Descent: `start` must have the shapes"),
    (lambda: P.descend("growing", dtype="float32"), "Problem.descend: `dtype` must be left out where the method"),
    (lambda: P.descend(dtype="float32", norm=3.0), "Problem.descend: `norm` must be left out in plain arithmetic"),
    (lambda: P.descend(dtype="float32", start=[1.0]), "Problem.descend: `start` must have the shapes"),
    (
        lambda: lab.Problem(X3, Y3, head=lab.Tanh(V3), trains="W").descend(dtype="float32"),
        "Problem.descend: `dtype` must be left out where inputs differ in length, under a head",
    ),
    (lambda: P.descend(dtype="float16"), "`dtype` must be one of float32, float64"),
    (lambda: P.descend(steps=-1), "Problem.descend: `steps` must be a whole number"),
    (lambda: P.flow(0), "Flow: `norm` must be a finite number above 0"),
    (lambda: P.from_p([1.0, 2.0]), "Problem.from_p: `problem` must be one of `embed`"),
    (lambda: W.to_p(np.eye(5)), "Problem.to_p: `problem` must be one of `embed`"),
    (lambda: W.embed([1.0]), 'Problem.embed: `problem` must be one that trains "p"'),
    (lambda: P.embed("u"), "Problem.embed: `u` must be"),
    (lambda: P.basins(method="plane"), "run_many: `method` must be one of"),
    (lambda: P.plot_basins(0), "Problem.plot_basins: `extent` must be a finite number above 0"),
    (lambda: W.plot_basins(), "Problem.plot_basins: `problem` must have p in the plane"),
    (lambda: P.flow(2.0).correlation([0.0, 0.0]), "Run: `direction` must be a direction other than 0"),
    (lambda: P.flow(2.0)["speed"], "Run: `name` must be one of t, loss"),
]


@pytest.mark.parametrize("call, message", REFUSED)
def test_refusals(call, message):
    with pytest.raises(InputError, match=message) as refused:
        call()
    assert "\n" not in str(refused.value)


def test_the_shelf():
    assert all(getattr(lab, name) is not None for name in lab.__all__)
    assert lab.figures.make is not None
    with pytest.raises(AttributeError, match="no attribute 'Many'"):
        _ = lab.Many
