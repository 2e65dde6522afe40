"""Attention by a matrix in the plane: runs of W and of its factors (K, Q), and where they point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...model.ragged import Vector
from ..claims.instances import few_tokens, more_tokens
from ..descent.trajectory import log_spaced
from ..problems.geometry import misalignment
from ..problems.problem import Problem
from .figure import CODE, OURS, PAPER, Check, Sheet, Table, Tables, figure, table
from .look import BLACK, BLUE, GREY, ORANGE, RED, Axes, Style, halfway, plane, ray
from .matrix_runs import both_solutions, in_plane_starts, matrix_ends
from .notebooks import EXACT, published_checks, published_table
from .tables import last, records, where

STEPS = 2000
REACH = 5.4  # of the panels, as a logarithm
NAMES = ("W", "(K, Q)")
FROBENIUS, NUCLEAR = Style(BLACK, "-", ""), Style(RED, "--", "")
WALKS = (Style(BLUE, "-", "o"), Style(ORANGE, "--", "s"))


def tables_of(problem: Problem, name: str) -> Tables:
    short, thin = both_solutions(problem)
    runs = [
        np.reshape(path, (-1, 2, 2)) for path in matrix_ends([problem], *in_plane_starts(), range(STEPS + 1), EXACT)
    ]
    best = problem.values.argmax(problem.scores)
    matrices = {"frobenius": short.W, "nuclear": thin.W}
    return {
        "paths": _paths(problem, runs),
        "distances": records(
            {"run": k, "t": t, **{f"to_{name}": misalignment(run[t], W) for name, W in matrices.items()}}
            for k, run in enumerate(runs)
            for t in log_spaced(STEPS, 12).tolist()
            if t >= 3
        ),
        "tokens": table(
            bag=problem.values.bag,
            x1=problem.values.rows[:, 0],
            x2=problem.values.rows[:, 1],
            best=problem.scores == problem.values.spread(problem.values.max(problem.scores)),
        ),
        "targets": records(
            {"bag": i, "nuclear": k, "x1": (W @ z)[0], "x2": (W @ z)[1]}
            for i, z in enumerate(problem.queries)
            for k, W in enumerate(matrices.values())
        ),
        "answer": table(
            frobenius=short.norm,
            nuclear=thin.norm,
            gap=thin.gap,
            residual=max(short.residuals().values()),
            apart=misalignment(short.W, thin.W),
            frobenius_rank=short.rank.relative,
            nuclear_rank=thin.rank.relative,
            selections=sum(np.array_equal(problem.read((run[STEPS],)).selection, best) for run in runs),
        ),
        "published": published_table(name),
    }


def _paths(problem: Problem, runs: Sequence[Vector]) -> Table:
    """W(t) z_i, the direction of attention that input i sees."""
    return records(
        {"run": number, "t": t, "bag": i, "x1": (run[t] @ z)[0], "x2": (run[t] @ z)[1]}
        for number, run in enumerate(runs)
        for t in range(0, STEPS + 1, 5)
        for i, z in enumerate(problem.queries)
    )


def drawn(tables: Tables, axes: Sequence[Axes], lines: bool = False) -> None:
    """One panel an input, and one for how fast the runs turn; with `lines` that part the tokens."""
    for i, panel in enumerate(axes[:2]):
        _input(panel, tables, i, lines)
    _speeds(axes[2], tables)
    handles, labels = axes[0].get_legend_handles_labels()
    axes[0].figure.legend(handles, labels, loc="outside upper center", ncols=4 if lines else 3)


def _points(found: Table) -> Vector:
    return np.column_stack([found["x1"], found["x2"]])


def _near(points: Vector) -> Vector:
    """The same directions at the radius log(1 + |x|): near and far on one sheet."""
    size = np.linalg.norm(points, axis=-1, keepdims=True)
    return np.asarray(points * np.log1p(size) / np.maximum(size, 1e-300))


def _input(panel: Axes, tables: Tables, i: int, lines: bool) -> None:
    """Tokens of an input, the two directions, and the paths W(t) z_i."""
    tokens = where(tables["tokens"], bag=i)
    for nuclear, style in enumerate((FROBENIUS, NUCLEAR)):
        (toward,) = _points(where(tables["targets"], bag=i, nuclear=nuclear))
        name = f"{('Frobenius', 'nuclear')[nuclear]} norm"
        ray(panel, toward, style, f"W z, {name}")
        if lines:
            _line(panel, toward, tokens, style, f"line between, {name}")
    for number, style in enumerate(WALKS):
        path = _near(_points(where(tables["paths"], run=number, bag=i)))
        every: Any = {"marker": style.marker, "markevery": 0.12, "markersize": 4.0}
        panel.plot(*path.T, **style.line, **every, label=f"W(t) z, {NAMES[number]} trained")
    others, best = (_near(_points(where(tokens, best=one))).T for one in (False, True))
    panel.plot(*best, "*", color=BLACK, markersize=11, label="best token", zorder=5)
    panel.plot(*others, ".", color=GREY, markersize=7, label="other tokens", zorder=5)
    plane(panel, (-REACH, -REACH), (REACH, REACH), "x")
    panel.set_title(f"input {i + 1}, at radius log(1 + |x|)")


def _line(panel: Axes, toward: Vector, tokens: Table, style: Style, label: str) -> None:
    """Half way between the best token and the next, across the direction."""
    best, others = (_points(where(tokens, best=one)) for one in (True, False))
    ends = _near(halfway(best, others, toward, np.sinh(np.linspace(-9.0, 9.0, 200))))
    panel.plot(*ends.T, color=style.color, linestyle=":", linewidth=1.0, scalex=False, scaley=False, label=label)


def _speeds(panel: Axes, tables: Tables) -> None:
    """1 - cos of both runs to both solutions."""
    for number, colour in ((0, BLUE), (1, ORANGE)):
        mine = where(tables["distances"], run=number)
        for name, dashes, mark, said in (("to_frobenius", "-", "o", "Frobenius"), ("to_nuclear", "--", "s", "nuclear")):
            style: Any = {"color": colour, "linestyle": dashes, "marker": mark, "markevery": 5}
            panel.loglog(mine["t"], mine[name], **style, label=f"{NAMES[number]} to {said}")
    panel.set(xlabel="steps t", ylabel="1 − cos(W, max-margin solution)")
    panel.legend(loc="lower left")


# by published notebook: norms and ranks of the Frobenius and the nuclear solution, 1 - cos between the two
EXPECTED = {
    "visualization1": (("8.6857", "9.7548"), (2, 1), "0.1096"),
    "visualization2": (("1.5264", "1.8726"), (2, 2), "0.0638"),
}


def checks_of(tables: Tables, name: str) -> list[Check]:
    """That each parametrisation goes to its own norm; and the solutions of both, in numbers."""
    answer, found, (norms, ranks, apart) = tables["answer"], tables["distances"], EXPECTED[name]
    end = [last(where(found, run=number)) for number in range(2)]
    wide = answer["apart"][0] / 2
    return [
        Check("runs that select the best tokens", answer["selections"][0], 2, 0, CODE),
        Check.at_most("1 − cos of W to the Frobenius solution", end[0]["to_frobenius"], 1e-3, PAPER),
        Check.at_least("1 − cos of W to the nuclear solution", end[0]["to_nuclear"], wide, PAPER),
        Check.at_most("1 − cos of (K, Q) to the nuclear solution", end[1]["to_nuclear"], 1e-3, PAPER),
        Check.at_least("1 − cos of (K, Q) to the Frobenius solution", end[1]["to_frobenius"], wide, PAPER),
        Check.at_most("duality gap of the nuclear solution", answer["gap"][0], 1e-8, OURS),
        Check.at_most("residual of the Frobenius solution", answer["residual"][0], 1e-9, OURS),
        Check.printed("Frobenius norm of its solution", answer["frobenius"][0], norms[0], OURS),
        Check.printed("nuclear norm of its solution", answer["nuclear"][0], norms[1], OURS),
        Check("rank of the Frobenius solution", answer["frobenius_rank"][0], ranks[0], 0, OURS),
        Check("rank of the nuclear solution", answer["nuclear_rank"][0], ranks[1], 0, OURS),
        Check.printed("1 − cos between the two", answer["apart"][0], apart, OURS),
        *published_checks(name, tables),
    ]


@figure(
    "matrix-paths",
    "W and its factors K, Q go to different max-margin matrices",
    lambda small: tables_of(few_tokens(), "visualization1"),
    lambda tables: checks_of(tables, "visualization1"),
    sheet=Sheet(3, 4.3),
)
def draw_paths(tables: Tables, *axes: Axes) -> None:
    """Two inputs with three tokens each in the plane and a query z for each; attention logits x'W z. The follow-up
    on self-attention as a support vector machine (arXiv:2308.16898) states that training W ends in the max-margin
    matrix of the Frobenius norm, training W = K Q' in that of the nuclear norm. Data of the published notebook;
    steps of length 0.1, for K and Q each. Left and middle: the path W(t) z of each input, which turns towards W z
    of its own solution (directions are true, the radius is a logarithm). Right: 1 − cos. Here the nuclear solution
    has rank 1: both inputs look along one line.
    """
    drawn(tables, axes)


@figure(
    "matrix-lines",
    "Two inputs of five tokens: each norm has its own separating lines",
    lambda small: tables_of(more_tokens(), "visualization2"),
    lambda tables: checks_of(tables, "visualization2"),
    sheet=Sheet(3, 4.3),
)
def draw_lines(tables: Tables, *axes: Axes) -> None:
    """As the figure before, with five tokens an input: the best one at (1, 0.5) or (1, −0.5), the others about (−1,
    0). The dotted lines, across W z of each solution, stand half way between the best token and the next: each
    solution parts them with the widest margin in its own norm. Here both solutions have rank 2.
    """
    drawn(tables, axes, lines=True)
