"""The laboratory's doors: every form of bags and scores gives the same answer, and what is no data one sentence."""

import re
from types import ModuleType

import numpy as np
import pytest

from keytokens.base.errors import InputError
from keytokens.lab import descent, paths, selection, svm
from keytokens.lab.descent import (
    Descent,
    Flow,
    Growing,
    MirrorDescent,
    Normalised,
    Plain,
    Polyak,
    Run,
    flow,
    log_spaced,
    power,
    run,
)
from keytokens.lab.paths import Decomposition, decomposition, falls, joint_path, regularisation_path, set_path
from keytokens.lab.problems.heads import Linear, Tanh
from keytokens.lab.problems.logits import outer_keys
from keytokens.lab.problems.problem import Problem
from keytokens.lab.problems.scores import scores_of
from keytokens.lab.problems.sets import optimal_sets
from keytokens.lab.selection import (
    cone,
    directional_neighbours,
    has_equal_scores,
    in_general_position,
    local_optimum,
    locally_optimal_selections,
    separable,
    separating_witness,
    smoothness,
    tight_smoothness,
)
from keytokens.lab.svm import (
    MarginProblem,
    attended_sets,
    label_svm,
    matrix_problem,
    multi_token_svm,
    relaxed_problem,
    solve,
    solve_lq,
    solve_matrix,
    solve_nuclear,
    solve_set_valued,
    tied_matrix_problem,
)
from keytokens.model.ragged import Bags
from keytokens.training.lbfgs import LBFGS

# Two bags of three tokens, and two of three and two; the first token of each has the largest score and can win.
EVEN = np.array([[[2.0, 1.0], [0.0, 0.5], [-1.0, 0.0]], [[1.5, -0.5], [0.0, 1.0], [0.5, -1.0]]])
EVEN_SCORES = np.array([3.0, 1.0, 0.0, 2.0, 0.5, 0.0])
RAGGED = [EVEN[0], EVEN[1, :2]]
RAGGED_SCORES = EVEN_SCORES[:5]
QUERIES = np.array([[1.0, 0.5], [0.5, 1.0]])
Z, P = np.zeros(2), [1.0, 0.5]


def shape(given):
    """Sizes of bags, whatever form they came in."""
    return Bags.of(given).sizes


def even(given):
    """Attention on the first token of bags of any sizes."""
    return [np.where(np.arange(size) == 0, 0.9, 0.1 / (size - 1)).tolist() for size in shape(given)]


def head_problem(keys):
    return Problem.with_sets([1, 1], keys, Tanh(np.array([1.0, 0.2])))


# With keys (or values) and scores: the call, and which numbers come of it. Owners as the refusals name them.
WITH_SCORES = {
    "local_optimum": lambda K, g: [local_optimum(K, g, [0, 0]).gap, *local_optimum(K, g, [0, 0]).direction],
    "locally_optimal_selections": lambda K, g: [one.selection for one in locally_optimal_selections(K, g)],
    "directional_neighbours": lambda K, g: directional_neighbours(K, g, P).margin,
    "cone": lambda K, g: cone(K, g, optimum_of(K)).radius,
    "tight_smoothness": lambda K, g: tight_smoothness(K, g),
    "has_equal_scores": lambda K, g: has_equal_scores(K, g),
    "Problem.of": lambda K, g: descended(Problem.of(K, g)),
    "Problem.cross": lambda K, g: descended(Problem.cross(K, QUERIES, g)),
}
WITH_BAGS = {
    "smoothness": lambda X: smoothness(X, P, np.eye(2).tolist()),
    "separating_witness": lambda X: separating_witness(X, np.eye(2).tolist(), P),
    "separable": lambda K: separable(K, [0, 0]),
    "in_general_position": lambda K: in_general_position(K, [0, 0]),
    "scores_of": lambda X: scores_of([1, -1], X, P),
    "MarginProblem.from_selection": lambda K: solve(MarginProblem.from_selection(K, [0, 0])).p,
    "MarginProblem.from_sets": lambda K: solve(MarginProblem.from_sets(K, [{0}, [0]])).p,
    "relaxed_problem": lambda K: solve(relaxed_problem(K, [0, 0], [0])).p,
    "solve_set_valued": lambda K: solve_set_valued(K, [{0}, {0, 1}]).p,
    "matrix_problem": lambda X: solve_matrix(matrix_problem(X, QUERIES.tolist(), [0, 0])).p,
    "tied_matrix_problem": lambda X: solve_matrix(tied_matrix_problem(X, QUERIES, [{0}, {0}])).p,
    "attended_sets": lambda X: [len(one) for one in attended_sets(X, [[1.0] + [0.0] * (n - 1) for n in shape(X)])],
    "multi_token_svm": lambda X: (
        multi_token_svm(X, QUERIES, [{0}, {0}], [np.log(part).tolist() for part in even(X)]).direction.p
    ),
    "optimal_sets": lambda X: [one[0] for one in optimal_sets([1, 1], X, Linear(np.array(P)))],
    "Problem.with_sets": lambda X: descended(head_problem(X)),
    "Problem.joint": lambda X: descended(Problem.joint([1, 1], X, X)),
    "Problem.under": lambda X: descended(Problem.under(X, QUERIES, [1, 1], Linear(np.array(P)))),
    "Problem.cross_joint": lambda X: descended(Problem.cross_joint(X, QUERIES, [1, 1])),
    "outer_keys": lambda X: outer_keys(X, QUERIES.tolist()).rows,
}


def optimum_of(keys):
    return local_optimum(keys, [[3.0] + [0.0] * (n - 1) for n in shape(keys)], [0, 0])


def descended(problem):
    """Minus the gradient at a point, and L - L* where it is known."""
    rng = np.random.default_rng(0)
    blocks = tuple(rng.normal(size=size) for size in problem.shapes)
    down = problem.descent(problem.read(blocks), blocks)
    return np.concatenate([one.unit.ravel() for one in down])


def flat(answer):
    return np.ravel(np.asarray(answer, np.float64))


BAGS = {
    "list": lambda K: [np.asarray(bag).tolist() for bag in K],
    "list of arrays": lambda K: [np.asarray(bag) for bag in K],
    "tuple of float32": lambda K: tuple(np.asarray(bag, np.float32) for bag in K),
    "array": lambda K: K,
    "Bags": lambda K: Bags.of(K),
}


def _per_bag(keys, scores):
    return np.split(scores, np.cumsum([len(bag) for bag in keys])[:-1])


SCORES = {
    "flat list": lambda K, g: g.tolist(),
    "list of lists": lambda K, g: [part.tolist() for part in _per_bag(K, g)],
    "list of arrays": lambda K, g: _per_bag(K, g),
    "(n, T)": lambda K, g: np.array(_per_bag(K, g)) if isinstance(K, np.ndarray) else g,
}
DATA = {"even": (EVEN, EVEN_SCORES), "ragged": (RAGGED, RAGGED_SCORES)}


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", WITH_SCORES)
def test_scores_in_any_form(name, data):
    keys, scores = DATA[data]
    expected = flat(WITH_SCORES[name](Bags.of(keys), scores))
    for bags, form in BAGS.items():
        for kind, listed in SCORES.items():
            found = flat(WITH_SCORES[name](form(keys), listed(keys, scores)))
            np.testing.assert_array_equal(found, expected, err_msg=f"{bags}, scores as {kind}")


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", WITH_BAGS)
def test_bags_in_any_form(name, data):
    keys = DATA[data][0]
    expected = flat(WITH_BAGS[name](Bags.of(keys)))
    for bags, form in BAGS.items():
        np.testing.assert_array_equal(flat(WITH_BAGS[name](form(keys))), expected, err_msg=bags)


def changed(array, value):
    other = np.array(array)
    other.flat[1] = value
    return other


BAD_BAGS = {
    "nan": changed(EVEN, np.nan),
    "inf": changed(EVEN, np.inf),
    "huge": changed(EVEN, 1e200),
    "Bags of nan": Bags(changed(EVEN.reshape(6, 2), np.nan), np.array([0, 3, 6])),
    "nothing": None,
    "no bag": [],
    "empty bag": [np.zeros((0, 2)), EVEN[0]],
    "flat": [1.0, 2.0],
    "a matrix": EVEN[0],
    "two widths": [EVEN[0], np.ones((2, 3))],
    "ragged tokens": [[[1.0, 2.0], [3.0]]],
    "strings": [[["1", "2"]]],
    "complex": EVEN.astype(complex),
    "a number": 3,
    "a beyond": [[[10**400, 1]]],
}
BAD_SCORES = {
    "nan": changed(EVEN_SCORES, np.nan),
    "inf": changed(EVEN_SCORES, -np.inf).reshape(2, 3),
    "too few": [1.0, 2.0],
    "transposed": EVEN_SCORES.reshape(3, 2),
    "ragged otherwise": [[1.0, 2.0], [1.0, 2.0, 3.0, 4.0]],
    "column": EVEN_SCORES[:, None],
    "nothing": None,
    "strings": ["1"] * 6,
    "words": "scores",
    "a number": 1.0,
    "objects": [object()] * 6,
}


def sentence(refused, owner, name):
    """One line: who, which argument, the rule, what was seen."""
    message = str(refused.value)
    assert "\n" not in message
    assert re.match(rf"{re.escape(owner)}: `{name}", message), message
    assert " must " in message
    assert "; saw " in message


@pytest.mark.parametrize("bad", BAD_SCORES)
@pytest.mark.parametrize("name", WITH_SCORES)
def test_bad_scores(name, bad):
    with pytest.raises(InputError) as refused:
        WITH_SCORES[name](EVEN, BAD_SCORES[bad])
    sentence(refused, name, "scores")


@pytest.mark.parametrize("bad", BAD_BAGS)
@pytest.mark.parametrize("name", [*WITH_SCORES, *WITH_BAGS])
def test_bad_bags(name, bad, monkeypatch):
    monkeypatch.setitem(globals(), "shape", lambda given: np.array([3, 3]))
    monkeypatch.setitem(globals(), "optimum_of", lambda keys: local_optimum(EVEN, EVEN_SCORES, [0, 0]))
    call = WITH_BAGS.get(name, lambda given: WITH_SCORES[name](given, EVEN_SCORES))
    with pytest.raises(InputError) as refused:
        call(BAD_BAGS[bad])
    sentence(refused, name, "(keys|values)")


SELECTING = {
    "local_optimum": lambda s: local_optimum(EVEN, EVEN_SCORES, s),
    "in_general_position": lambda s: in_general_position(EVEN, s),
    "MarginProblem.from_selection": lambda s: MarginProblem.from_selection(EVEN, s),
    "relaxed_problem": lambda s: relaxed_problem(EVEN, s, [0]),
    "matrix_problem": lambda s: matrix_problem(EVEN, QUERIES, s),
}
BAD_SELECTIONS = [None, [0], [0, 3], [-1, 0], [0.0, 0.0], [True, False], ["0", "0"], [[0], [0, 1]], 0, {0, 1}]


@pytest.mark.parametrize("bad", BAD_SELECTIONS, ids=str)
@pytest.mark.parametrize("name", SELECTING)
def test_bad_selections(name, bad):
    with pytest.raises(InputError) as refused:
        SELECTING[name](bad)
    sentence(refused, name, "selection")


@pytest.mark.parametrize("name", SELECTING)
def test_selections_as_lists_tuples_and_arrays(name):
    for chosen in ([0, 0], (0, 0), np.zeros(2, np.uint8), np.zeros(2, np.int32)):
        SELECTING[name](chosen)


SETTING = {
    "MarginProblem.from_sets": lambda s: MarginProblem.from_sets(EVEN, s),
    "solve_set_valued": lambda s: solve_set_valued(EVEN, s),
    "tied_matrix_problem": lambda s: tied_matrix_problem(EVEN, QUERIES, s),
    "multi_token_svm": lambda s: multi_token_svm(EVEN, QUERIES, s, np.zeros(6)),
    "Problem.with_sets": lambda s: Problem.with_sets([1, 1], EVEN, Linear(np.array(P)), sets=s),
}
BAD_SETS = [3, [{0}], [{0}, {3}], [{0}, set()], [{0}, {-1}], [{0}, {0.5}], [{0}, {"0"}], [[[0]], [[0, 1]]], [0, 0]]


@pytest.mark.parametrize("bad", BAD_SETS, ids=str)
@pytest.mark.parametrize("name", SETTING)
def test_bad_sets(name, bad):
    with pytest.raises(InputError) as refused:
        SETTING[name](bad)
    sentence(refused, name, "sets")


PROBLEM = Problem.of(EVEN, EVEN_SCORES)
JOINT = Problem.joint([1, 1], EVEN, EVEN)
STARTED = {
    "Descent": lambda p: run(Descent(PROBLEM, Normalised(0.1)), p, 20),
    "MirrorDescent": lambda p: run(MirrorDescent(PROBLEM, Normalised(0.1), q=3.0), p, 20),
    "Flow": lambda p: flow(PROBLEM, p, 5.0),
}
BAD_POINTS = [None, [1.0], [1.0, np.nan], [np.inf, 0.0], "ab", [[1.0, 2.0]], [1.0, [2.0]], np.zeros(3), ["1", "2"], {}]


@pytest.mark.parametrize("name", STARTED)
def test_starts(name):
    expected = STARTED[name](np.array(P)).state.p
    for form in (P, np.array(P, np.float32), (np.array(P),), (P,)):
        np.testing.assert_array_equal(STARTED[name](form).state.p, expected)
    for bad in BAD_POINTS:
        with pytest.raises(InputError) as refused:
            STARTED[name](bad)
        sentence(refused, name, "start")


def test_starts_of_two_blocks():
    method = Descent(JOINT, Normalised(0.1))
    expected = run(method, (np.ones(2), np.zeros(2)), 5).state.blocks
    found = run(method, [[1.0, 1.0], [0, 0]], 5).state.blocks
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(
        InputError, match=r"Descent: `start` must have the shapes of the trained parameters, \(2,\), \(2,\)"
    ):
        run(method, [1.0, 1.0], 5)


def test_lbfgs_reads_its_start():
    method = LBFGS(lambda x: (float(x @ x), 2 * x), np.ones(2))
    expected = run(method, np.array(P), 10).state.theta
    np.testing.assert_array_equal(run(method, P, 10).state.theta, expected)


LBFGS_2 = LBFGS(lambda x: (float(x @ x), 2 * x), np.ones(2))
SOLUTION = solve(MarginProblem.from_selection(EVEN, [0, 0]))
TRAJECTORY = Run.of(Descent(PROBLEM, Normalised(0.1)), Z, 5)
COUNTS = [[1, 1, 0], [0, 1, 1]]
E3 = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]

# Every other argument of every public name: how the sentence begins, and the call.
REFUSED = [
    *(("directional_neighbours: `q`", lambda q=q: directional_neighbours(EVEN, EVEN_SCORES, q)) for q in BAD_POINTS),
    ("cone: `optimum`", lambda: cone(EVEN, EVEN_SCORES, None)),
    ("cone: `optimum`", lambda: cone(RAGGED, RAGGED_SCORES, local_optimum(EVEN, EVEN_SCORES, [0, 0]))),
    *(("smoothness: `v`", lambda v=v: smoothness(EVEN, v, np.eye(2))) for v in BAD_POINTS),
    ("smoothness: `W`", lambda: smoothness(EVEN, P, np.eye(3))),
    ("smoothness: `W`", lambda: smoothness(EVEN, P, [[1.0], [2.0, 3.0]])),
    ("smoothness: `M0`", lambda: smoothness(EVEN, P, np.eye(2), M0="a")),
    ("tight_smoothness: `M1`", lambda: tight_smoothness(EVEN, EVEN_SCORES, M1=np.nan)),
    *(("separating_witness: `v`", lambda v=v: separating_witness(EVEN, np.eye(2), v)) for v in BAD_POINTS),
    ("separating_witness: `W`", lambda: separating_witness(EVEN, np.full((2, 2), np.nan), P)),
    ("MarginProblem.from_rows: `A`", lambda: MarginProblem.from_rows([["1"]])),
    ("MarginProblem.from_rows: `b`", lambda: MarginProblem.from_rows([[1.0]], "x")),
    ("MarginProblem.from_rows: `b`", lambda: MarginProblem.from_rows([[1.0]], np.nan)),
    ("MarginProblem.from_vocabulary: `counts`", lambda: MarginProblem.from_vocabulary(E3, [["a"]], [0])),
    ("MarginProblem.from_vocabulary: `sel", lambda: MarginProblem.from_vocabulary(E3, COUNTS, None)),
    ("MarginProblem.from_vocabulary: `sel", lambda: MarginProblem.from_vocabulary(E3, COUNTS, [0, 0])),
    ("distance: `q`", lambda: SOLUTION.distance([1.0, np.nan])),
    ("distance: `q`", lambda: SOLUTION.distance(None)),
    ("solve: `problem`", lambda: solve(EVEN)),
    ("solve: `start`", lambda: solve(SOLUTION.problem, start=[[0], [1, 2]])),
    ("solve: `start`", lambda: solve(SOLUTION.problem, start=["a"])),
    ("solve_lq: `problem`", lambda: solve_lq(EVEN, 2.0)),
    ("solve_matrix: `problem`", lambda: solve_matrix(EVEN)),
    ("solve_nuclear: `problem`", lambda: solve_nuclear(EVEN)),
    ("MarginProblem.from_rows: `A`", lambda: label_svm([[1.0], ["a"]], [1, -1])),
    ("label_svm: `labels`", lambda: label_svm([[1.0], [2.0]], [[1], [1, 2]])),
    ("relaxed_problem: `support`", lambda: relaxed_problem(EVEN, [0, 0], [[0], [0, 1]])),
    ("relaxed_problem: `selection[1]`", lambda: relaxed_problem(EVEN, [0, 7], [0])),
    ("solve_set_valued: `limit`", lambda: solve_set_valued(EVEN, [{0}, {0}], limit="x")),
    ("matrix_problem: `queries`", lambda: matrix_problem(EVEN, [[1.0], [np.nan]], [0, 0])),
    ("matrix_problem: `queries`", lambda: matrix_problem(EVEN, [["1"], ["2"]], [0, 0])),
    ("tied_matrix_problem: `queries`", lambda: tied_matrix_problem(EVEN, None, [{0}, {0}])),
    ("attended_sets: `attention`", lambda: attended_sets(EVEN, np.full((2, 3), np.nan))),
    ("multi_token_svm: `log_att", lambda: multi_token_svm(EVEN, QUERIES, [{0}, {0}], [[0.0], [0.0]])),
    ("MultiToken: `W`", lambda: multi_token_svm(EVEN, QUERIES, [{0}, {0}], Z6).length([[1], [1, 2]])),
    ("Decomposition: `nu`", lambda: Decomposition([[1], [1, 2]], 0.0, 0.5)),
    ("Decomposition.rho: `loss`", lambda: Decomposition(np.ones(2), 0.0, 0.5).rho(1.0, None)),
    ("falls: `problem`", lambda: falls(PROBLEM)),
    ("decomposition: `problem`", lambda: decomposition(None)),
    *(
        (f"{name}: `{next(iter(o))}`", lambda make=make, o=o: make(**o))
        for name, make in {
            "regularisation_path": lambda **o: regularisation_path(**{"problem": PROBLEM, "radii": [1.0], **o}),
            "joint_path": lambda **o: joint_path(**{"problem": JOINT, "radii": [1.0], "ratio": 1.0, **o}),
            "set_path": lambda **o: set_path(**{"problem": head_problem(EVEN), "radii": [1.0], **o}),
        }.items()
        for o in (
            {"problem": EVEN},
            {"radii": "x"},
            {"radii": [1.0, np.nan]},
            {"radii": [[1.0], [1.0, 2.0]]},
            {"radii": None},
            {"starts": -1},
            {"starts": "x"},
            {"seed": "x"},
        )
    ),
    ("joint_path: `ratio`", lambda: joint_path(JOINT, [1.0], "x")),
    ("joint_path: `ratio`", lambda: joint_path(JOINT, [1.0], np.nan)),
    ("joint_path: `starts`", lambda: joint_path(JOINT, [1.0], 1.0, starts=0)),
    ("Descent: `problem`", lambda: Descent(None, Normalised(0.1))),
    ("Descent: `step_rule`", lambda: Descent(PROBLEM, 0.1)),
    ("Descent: `norm`", lambda: Descent(PROBLEM, Normalised(0.1), np.nan)),
    ("MirrorDescent: `step_rule`", lambda: MirrorDescent(PROBLEM, Normalised)),
    ("Flow: `problem`", lambda: Flow(EVEN, 1.0)),
    ("Flow: `norm`", lambda: Flow(PROBLEM, "x")),
    ("run: `max_steps`", lambda: flow(PROBLEM, Z, 1.0, max_pieces=-1)),
    ("run: `method`", lambda: run(PROBLEM, Z, 5)),
    ("run: `max_steps`", lambda: run(LBFGS_2, Z, "x")),
    ("run: `watch`", lambda: run(LBFGS_2, Z, 5, 3)),
    *(("LBFGS: `start`", lambda p=p: run(LBFGS_2, p, 5)) for p in BAD_POINTS),
    ("Plain: `eta`", lambda: Plain("x")),
    ("Normalised: `eta`", lambda: Normalised(np.nan)),
    ("Growing: `eta`", lambda: Growing(None)),
    ("Polyak: `cap`", lambda: Polyak([1.0])),
    ("power: `eta`", lambda: power("x", 1.0)),
    ("power: `a`", lambda: power(1.0, np.nan)),
    ("log_spaced: `last`", lambda: log_spaced("x")),
    ("log_spaced: `per_decade`", lambda: log_spaced(10, 0)),
    ("Run: `steps`", lambda: Run.of(Descent(PROBLEM, Normalised(0.1)), Z, 5, ["x"])),
    ("Run: `steps`", lambda: Run.of(Descent(PROBLEM, Normalised(0.1)), Z, 5, 3)),
    *(("Run: `direction`", lambda p=p: TRAJECTORY.distance(p)) for p in [*BAD_POINTS, Z]),
    ("Problem.of: `loss`", lambda: Problem.of(EVEN, EVEN_SCORES, 3)),
    ("Problem.cross: `queries`", lambda: Problem.cross(EVEN, [np.nan, 1.0], EVEN_SCORES)),
    ("Problem.cross: `queries`", lambda: Problem.cross(EVEN, [], EVEN_SCORES)),
    ("Problem.joint: `labels`", lambda: Problem.joint([1, "a"], EVEN, EVEN)),
    ("Problem.joint: `labels`", lambda: Problem.joint([1, np.nan], EVEN, EVEN)),
    ("Problem.joint: `keys`", lambda: Problem.joint([1, 1], EVEN, RAGGED)),
    *(("Problem.vocabulary: `v`", lambda v=v: Problem.vocabulary(E3, COUNTS, [1, -1], v)) for v in BAD_POINTS),
    ("Problem.vocabulary: `embeddings`", lambda: Problem.vocabulary([["a"]], COUNTS, [1, -1], P)),
    ("Problem.vocabulary: `counts`", lambda: Problem.vocabulary(E3, "x", [1, -1], P)),
    ("Problem.vocabulary: `counts`", lambda: Problem.vocabulary(E3, [[1, 0, np.nan]], [1], P)),
    ("Problem.vocabulary: `labels`", lambda: Problem.vocabulary(E3, COUNTS, "ab", P)),
    ("Problem.with_sets: `head`", lambda: Problem.with_sets([1, 1], EVEN, None)),
    ("Problem.with_sets: `head`", lambda: Problem.with_sets([1, 1], EVEN, Linear(np.ones(3)))),
    ("Problem.with_sets: `loss`", lambda: Problem.with_sets([1, 1], EVEN, Linear(np.array(P)), loss=3)),
    ("optimal_sets: `head`", lambda: optimal_sets([1, 1], EVEN, None)),
    ("Problem.cross: `queries`", lambda: Problem.cross(EVEN, "x", EVEN_SCORES)),
    ("Problem.cross_joint: `labels`", lambda: Problem.cross_joint(EVEN, QUERIES, [1, 2])),
    ("Problem.factors: `width`", lambda: Problem.cross(EVEN, QUERIES, EVEN_SCORES).factors("x")),
    *(("scores_of: `v`", lambda v=v: scores_of([1, 1], EVEN, v)) for v in BAD_POINTS),
    ("scores_of: `labels`", lambda: scores_of(["1", "1"], EVEN, P)),
]
Z6 = np.zeros(6)


@pytest.mark.parametrize("start, call", REFUSED, ids=[one[0] for one in REFUSED])
def test_other_arguments(start, call):
    with pytest.raises(InputError) as refused:
        call()
    message = str(refused.value)
    assert message.startswith(start), message
    assert "\n" not in message


# What comes out of the doors, and what holds no data.
RESULTS: dict[ModuleType, set[str]] = {
    selection: {"Cone", "DirectionalNeighbours", "LocalOptimum"},
    svm: {"NotSeparable", "NotSolved", "Solution", "Witness"},
    paths: {"Falls", "PathPoint", "Proof", "SetPoint"},
    descent: {"Outcome", "Status"},
}


@pytest.mark.parametrize("room", RESULTS, ids=lambda room: room.__name__)
def test_no_public_name_is_left_out(room):
    owners = [start.partition(":")[0].partition(".")[0] for start, _ in REFUSED]
    doors = {*owners, *WITH_SCORES, *WITH_BAGS, "flow"}  # which refuses as Flow and run do
    own = {name for name, value in vars(room).items() if getattr(value, "__module__", "") == room.__name__}
    public = getattr(room, "__all__", None) or {name for name in own if not name.startswith("_")}
    assert set(public) - doors == RESULTS[room]
    assert not doors & RESULTS[room]


def test_one_token_beside_two_others():
    """The first of three tokens wins; scores come as one row."""
    keys = [[[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]]
    for scores in ([[1.0, 0.5, 0.0]], np.array([[1.0, 0.5, 0.0]]), [1, 0.5, 0]):
        assert local_optimum(keys, scores, [0]).holds
        assert not local_optimum(keys, -np.array(scores), [0]).holds
