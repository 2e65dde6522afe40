"""What the two figures of attention by a matrix in the plane share: runs of W and of (K, Q), and where they point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...model.ragged import Vector
from ..descent.steps import Normalised
from ..descent.trajectory import log_spaced
from ..problems.cross_attention import CrossProblem
from ..problems.geometry import misalignment
from ..problems.key_query import EPSILON, KeyQueryProblem
from ..svm.matrix import MatrixSolution, matrix_problem, solve_matrix
from ..svm.nuclear import NuclearSolution, solve_nuclear
from .figure import CODE, OURS, PAPER, Check, Rule, Table, Tables, table
from .look import BLACK, BLUE, GREY, ORANGE, RED, Style, plane, ray, sheet
from .tables import states

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


STEPS, LENGTH = 2000, 0.1
REACH = 5.4  # of the panels, as a logarithm
NAMES = ("W", "(K, Q)", "(K, Q), penalty")
FROBENIUS, NUCLEAR = Style(BLACK, "-", ""), Style(RED, "--", "")
WALKS = (Style(BLUE, "-", "o"), Style(ORANGE, "--", "s"))


def tables_of(problem: CrossProblem) -> Tables:
    best = problem.values.argmax(problem.scores)
    margins = matrix_problem(problem.values, problem.queries, best)
    short = solve_matrix(margins)
    thin = solve_nuclear(margins, short)
    runs = _runs(problem)
    return {
        "paths": _paths(problem, runs[:2]),
        "distances": _distances(runs, short.W, thin.W),
        "tokens": table(
            bag=problem.values.bag,
            x1=problem.values.rows[:, 0],
            x2=problem.values.rows[:, 1],
            best=problem.scores == problem.values.spread(problem.values.max(problem.scores)),
        ),
        "targets": _targets(problem, short, thin),
        "answer": _answer(problem, runs, short, thin),
    }


def _runs(problem: CrossProblem) -> list[dict[int, Vector]]:
    """W by step: trained as one matrix from 0; as K Q' from Q = 0; and with the published penalty."""
    plain = {t: one.p for t, one in states(problem, Normalised(LENGTH), np.zeros(problem.matrix_shape), STEPS).items()}
    runs = [plain]
    for penalty in (0.0, EPSILON):
        factors = KeyQueryProblem(problem, 2, penalty)
        start = 0.1 * np.random.default_rng(0).normal(size=(2, 2)), np.zeros((2, 2))
        found = states(factors, Normalised(LENGTH), start, STEPS)
        runs.append({t: factors.matrix(one.blocks) for t, one in found.items()})
    return runs


def _paths(problem: CrossProblem, runs: list[dict[int, Vector]]) -> Table:
    """W(t) z_i, the direction of attention that input i sees."""
    rows = [
        (number, t, i, *(W @ z))
        for number, run in enumerate(runs)
        for t, W in run.items()
        if t % 5 == 0
        for i, z in enumerate(problem.queries)
    ]
    number, t, bag, x1, x2 = (np.array(column) for column in zip(*rows, strict=True))
    return table(run=number, t=t, bag=bag, x1=x1, x2=x2)


def _distances(runs: list[dict[int, Vector]], short: Vector, thin: Vector) -> Table:
    at = [t for t in log_spaced(STEPS, 12).tolist() if t >= 3]
    rows = [
        (number, t, misalignment(run[t], short), misalignment(run[t], thin))
        for number, run in enumerate(runs)
        for t in at
    ]
    number, t, to_short, to_thin = (np.array(column) for column in zip(*rows, strict=True))
    return table(run=number, t=t, to_frobenius=to_short, to_nuclear=to_thin)


def _targets(problem: CrossProblem, short: MatrixSolution, thin: NuclearSolution) -> Table:
    """W z_i of both solutions."""
    toward = np.stack([problem.queries @ W.T for W in (short.W, thin.W)], axis=1)  # (inputs, norms, 2)
    inputs, norms = np.indices(toward.shape[:2])
    return table(bag=inputs.ravel(), nuclear=norms.ravel(), x1=toward[..., 0].ravel(), x2=toward[..., 1].ravel())


def _answer(
    problem: CrossProblem, runs: list[dict[int, Vector]], short: MatrixSolution, thin: NuclearSolution
) -> Table:
    best = problem.values.argmax(problem.scores)
    ends = [problem.read((run[STEPS],)) for run in runs]
    return table(
        frobenius=[short.norm],
        nuclear=[thin.norm],
        gap=[thin.gap],
        residual=[max(short.residuals().values())],
        apart=[misalignment(short.W, thin.W)],
        frobenius_rank=[short.rank.relative],
        nuclear_rank=[thin.rank.relative],
        selections=[sum(np.array_equal(end.selection, best) for end in ends)],
    )


def drawn(tables: Tables, lines: bool = False) -> Drawing:
    """One panel an input, and one for how fast the runs turn; with `lines` that part the tokens."""
    drawing, axes = sheet(3, 4.3)
    for i, panel in enumerate(axes[:2]):
        _input(panel, tables, i, lines)
    _speeds(axes[2], tables)
    handles, labels = axes[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside upper center", ncols=4 if lines else 3)
    return drawing


def _near(points: Vector) -> Vector:
    """The same directions at the radius log(1 + |x|): near and far on one sheet."""
    size = np.linalg.norm(points, axis=-1, keepdims=True)
    return np.asarray(points * np.log1p(size) / np.maximum(size, 1e-300))


def _input(panel: Axes, tables: Tables, i: int, lines: bool) -> None:
    """Tokens of an input, the two directions, and the paths W(t) z_i."""
    tokens, targets, paths = tables["tokens"], tables["targets"], tables["paths"]
    for nuclear, style in enumerate((FROBENIUS, NUCLEAR)):
        here = (targets["bag"] == i) & (targets["nuclear"] == nuclear)
        toward = np.array([targets["x1"][here][0], targets["x2"][here][0]])
        name = f"{('Frobenius', 'nuclear')[nuclear]} norm"
        ray(panel, toward, style, f"W z, {name}")
        if lines:
            _line(panel, toward, tokens, i, style, f"line between, {name}")
    for number, style in enumerate(WALKS):
        mine = (paths["run"] == number) & (paths["bag"] == i)
        path = _near(np.column_stack([paths["x1"][mine], paths["x2"][mine]]))
        every: Any = {"marker": style.marker, "markevery": 0.12, "markersize": 4.0}
        panel.plot(*path.T, **style.line, **every, label=f"W(t) z, {NAMES[number]} trained")
    _tokens(panel, tokens, i)
    plane(panel, (-REACH, -REACH), (REACH, REACH), "x")
    panel.set_title(f"input {i + 1}, at radius log(1 + |x|)")


def _tokens(panel: Axes, tokens: Table, i: int) -> None:
    for best, mark, size in ((True, "*", 11), (False, ".", 7)):
        here = (tokens["bag"] == i) & (tokens["best"] == best)
        name = "best token" if best else "other tokens"
        colour = BLACK if best else GREY
        points = _near(np.column_stack([tokens["x1"][here], tokens["x2"][here]]))
        panel.plot(*points.T, mark, color=colour, markersize=size, label=name, zorder=5)


def _line(panel: Axes, toward: Vector, tokens: Table, i: int, style: Style, label: str) -> None:
    """Half way between the best token and the next, across the direction."""
    here = tokens["bag"] == i
    logits = np.column_stack([tokens["x1"][here], tokens["x2"][here]]) @ toward
    best = tokens["best"][here]
    middle = (logits[best].min() + logits[~best].max()) / 2 * toward / (toward @ toward)
    side = np.array([-toward[1], toward[0]]) / np.linalg.norm(toward)
    ends = _near(middle + np.outer(np.sinh(np.linspace(-9.0, 9.0, 200)), side))
    panel.plot(*ends.T, color=style.color, linestyle=":", linewidth=1.0, scalex=False, scaley=False, label=label)


def _speeds(panel: Axes, tables: Tables) -> None:
    """1 - cos of both runs to both solutions."""
    found = tables["distances"]
    for number, colour in ((0, BLUE), (1, ORANGE)):
        mine = found["run"] == number
        for name, dashes, mark, said in (("to_frobenius", "-", "o", "Frobenius"), ("to_nuclear", "--", "s", "nuclear")):
            style: Any = {"color": colour, "linestyle": dashes, "marker": mark, "markevery": 5}
            panel.loglog(found["t"][mine], found[name][mine], **style, label=f"{NAMES[number]} to {said}")
    panel.set_xlabel("steps t")
    panel.set_ylabel("1 − cos(W, max-margin solution)")
    panel.legend(loc="lower left")


PENALTY = """\
With the penalty of published code, 2.2e-16 (|K|² + |Q|²), the factors stop growing where the loss falls below it, and \
the direction stays a little way from the limit; without it the run goes on."""


@dataclass(frozen=True)
class Expected:
    """The numbers of one problem; pairs are of the Frobenius and the nuclear solution."""

    norms: tuple[str, str]
    ranks: tuple[int, int]
    apart: str  # 1 - cos between the two
    penalised: tuple[str, str]  # 1 - cos of (K, Q) to both, with the penalty


def checks_of(tables: Tables, expected: Expected) -> list[Check]:
    """That each parametrisation goes to its own norm; and the solutions of both, in numbers."""
    answer, found = tables["answer"], tables["distances"]
    end = {number: {key: found[key][found["run"] == number][-1] for key in found} for number in range(3)}
    wide = answer["apart"][0] / 2
    return [
        Check("runs that select the best tokens", answer["selections"][0], 3, 0, CODE),
        Check("1 − cos of W to the Frobenius solution", end[0]["to_frobenius"], 1e-3, 0, PAPER, rule=Rule.AT_MOST),
        Check("1 − cos of W to the nuclear solution", end[0]["to_nuclear"], wide, 0, PAPER, rule=Rule.AT_LEAST),
        Check("1 − cos of (K, Q) to the nuclear solution", end[1]["to_nuclear"], 1e-3, 0, PAPER, rule=Rule.AT_MOST),
        Check(
            "1 − cos of (K, Q) to the Frobenius solution", end[1]["to_frobenius"], wide, 0, PAPER, rule=Rule.AT_LEAST
        ),
        Check.printed(
            "1 − cos of (K, Q) to the nuclear one, penalty", end[2]["to_nuclear"], expected.penalised[1], OURS, PENALTY
        ),
        Check.printed("... to the Frobenius one", end[2]["to_frobenius"], expected.penalised[0], OURS, PENALTY),
        Check("duality gap of the nuclear solution", answer["gap"][0], 1e-8, 0, OURS, rule=Rule.AT_MOST),
        Check("residual of the Frobenius solution", answer["residual"][0], 1e-9, 0, OURS, rule=Rule.AT_MOST),
        Check.printed("Frobenius norm of its solution", answer["frobenius"][0], expected.norms[0], OURS),
        Check.printed("nuclear norm of its solution", answer["nuclear"][0], expected.norms[1], OURS),
        Check("rank of the Frobenius solution", answer["frobenius_rank"][0], expected.ranks[0], 0, OURS),
        Check("rank of the nuclear solution", answer["nuclear_rank"][0], expected.ranks[1], 0, OURS),
        Check.printed("1 − cos between the two", answer["apart"][0], expected.apart, OURS),
    ]
