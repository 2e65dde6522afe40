"""Ranks of max-margin matrices: full in the Frobenius norm, low in the nuclear norm, certified."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ...base.errors import NotSeparable
from ...model.ragged import Vector
from ..claims.instances import cross_spheres
from ..problems.cross_attention import CrossProblem
from ..svm.matrix import MatrixSolution, matrix_problem, solve_matrix
from ..svm.nuclear import NuclearSolution, solve_nuclear
from ..svm.solution import NotSolved
from .cross_runs import WIDE, standard_error
from .figure import CODE, OURS, Check, Figure, Rule, Table, Tables, table
from .look import BLUE, GREEN, ORANGE, sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

CAPTION = """\
n inputs of T tokens in d dimensions, tokens, queries and head uniform on the sphere, random labels; the best tokens \
are to be separated. Mean ranks of the max-margin matrices over problems that can be separated: full lines for the \
Frobenius norm, dashed ones for the nuclear norm. The Frobenius solution has rank min(n, d), less an input now and \
then whose rows are all slack. Every nuclear solution is certified by a duality gap of at most 1e-8; its rank is the \
same, but for about one problem in a hundred, whether singular values below 1e-7 or below 1e-3 of the largest count \
as zero."""
CLOSE = """\
In few dimensions the margin may be so thin that the largest singular value is a thousand times another that is not \
zero: there the relative measure counts too few."""
CONFLICT = """\
The published picture has nuclear ranks near n (13.9 for n = d = 15). Certified optima have rank 4.7 there. The \
published code takes the default solver of its modelling package and counts singular values above 1e-7. Our benchmark \
of the solvers repeats that: rank 14 at 1e-7, but 5 at 1e-3 of the largest, and rows that miss their bound by 1e-6. \
So the published curve counts a solver's noise. Where a problem cannot be separated, that solver returns nothing, and \
the published code counts nothing as rank 1."""
CASES = ((5, 5), (10, 5), (15, 5), (5, 10), (5, 15))  # n, T
DIMENSIONS = (2, 3, 4, 5, 10, 15, 20)
DRAWS = 8  # times the wanted number of problems, at most
# of ten separable problems each, by another solver: n, d -> Frobenius, nuclear
EXPECTED = {
    (5, 5): (4.8, 2.6),
    (5, 10): (5.0, 2.4),
    (5, 20): (5.0, 2.3),
    (10, 10): (10.0, 3.5),
    (10, 15): (10.0, 3.8),
    (15, 15): (15.0, 4.7),
    (15, 20): (15.0, 4.7),
}


@cache
def _tables(count: int) -> Tables:
    parts = [_runs(n, T, d, count) for n, T in CASES for d in DIMENSIONS]
    runs = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {"runs": runs, "means": _means(runs)}


def _runs(n: int, T: int, d: int, count: int) -> Table:
    """The first separable problems, and how many were drawn for them."""
    found: list[tuple[int, MatrixSolution, NuclearSolution]] = []
    seed = 0
    while len(found) < count and seed < DRAWS * count:
        both = _solved(cross_spheres(np.random.default_rng([n, T, d, seed]), n, T, d))
        seed += 1
        if both is not None:
            found.append((seed - 1, *both))
    size = len(found)
    return table(
        n=np.full(size, n),
        T=np.full(size, T),
        d=np.full(size, d),
        seed=np.array([one[0] for one in found], np.intp),
        drawn=np.full(size, seed),
        frobenius=np.array([short.rank.absolute for _, short, _ in found], np.float64),
        nuclear=np.array([thin.rank.absolute for _, _, thin in found], np.float64),
        nuclear_relative=np.array([thin.rank.relative for _, _, thin in found], np.float64),
        gap=np.array([thin.gap for _, _, thin in found], np.float64),
    )


def _solved(problem: CrossProblem) -> tuple[MatrixSolution, NuclearSolution] | None:
    """None where nothing separates, or by a margin below what doubles can certify."""
    margins = matrix_problem(problem.values, problem.queries, problem.values.argmax(problem.scores))
    try:
        short = solve_matrix(margins)
        return short, solve_nuclear(margins, short)
    except (NotSeparable, NotSolved):
        return None


def _means(runs: Table) -> Table:
    rows = []
    for n, T in CASES:
        for d in DIMENSIONS:
            here = (runs["n"] == n) & (runs["T"] == T) & (runs["d"] == d)
            if here.any():
                ranks = (runs[name][here].mean() for name in ("frobenius", "nuclear"))
                rows.append((n, T, d, int(here.sum()), int(runs["drawn"][here][0]), *ranks))
    columns = (np.array(column) for column in zip(*rows, strict=True))
    return table(**dict(zip(("n", "T", "d", "separable", "drawn", "frobenius", "nuclear"), columns, strict=True)))


def compute(small: bool) -> Tables:
    return _tables(3 if small else 20)


def full() -> Tables:
    return _tables(100)


def draw(tables: Tables) -> Drawing:
    drawing, (left, right) = sheet(2, 4.4)
    for panel, cases, name in ((left, CASES[:3], "n"), (right, (CASES[0], *CASES[3:]), "T")):
        for (n, T), colour, mark in zip(cases, (BLUE, ORANGE, GREEN), "osD", strict=True):
            _lines(panel, tables["means"], n, T, colour, mark, f"{name} = {n if name == 'n' else T}")
        panel.set_xlabel("dimension d")
        panel.set_ylabel("mean rank")
        panel.set_title("T = 5 tokens" if name == "n" else "n = 5 inputs")
        panel.set_ylim(0, None)
        panel.set_xticks(DIMENSIONS)
        panel.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.08))
    return drawing


def _lines(panel: Axes, means: Table, n: int, T: int, colour: str, mark: str, name: str) -> None:
    here = (means["n"] == n) & (means["T"] == T)
    panel.plot(means["d"][here], means["frobenius"][here], "-", marker=mark, color=colour, label=f"{name}, Frobenius")
    panel.plot(means["d"][here], means["nuclear"][here], "--", marker=mark, color=colour, label=f"{name}, nuclear")


def checks(tables: Tables) -> list[Check]:
    runs = tables["runs"]
    clear = (runs["nuclear"] == runs["nuclear_relative"])[runs["d"] >= 10]
    few = max(0.02, 1.5 / len(clear))
    low = runs["nuclear"] <= np.minimum(runs["n"], runs["d"])
    full_rank = runs["frobenius"] == np.minimum(runs["n"], runs["d"])
    wide = runs["d"] >= 10
    return [
        Check("largest duality gap", runs["gap"].max(), 1e-8, 0, OURS, rule=Rule.AT_MOST),
        Check("nuclear ranks that agree by both measures, d ≥ 10, share", clear.mean(), 1.0, few, OURS, CLOSE),
        Check("nuclear ranks above min(n, d)", (~low).sum(), 0, 0, OURS),
        Check("Frobenius rank min(n, d) where d ≥ 10, share", full_rank[wide].mean(), 1.0, 0.05, CODE),
        *(check for key in EXPECTED for check in _ranks(runs, *key)),
    ]


def _wide(ranks: Vector, name: str) -> float:
    """Nuclear ranks differ by about 0.5 from one problem to the next, also where a few happen to be equal."""
    least = 0.25 if name == "frobenius" else WIDE * 0.5 * np.sqrt(1 / len(ranks) + 1 / 10)
    return float(max(WIDE * standard_error(ranks, 10), least))


def _ranks(runs: Table, n: int, d: int) -> list[Check]:
    here = (runs["n"] == n) & (runs["d"] == d) & (runs["T"] == 5)
    return [
        Check(
            f"mean {said} rank, n = {n}, T = 5, d = {d}",
            runs[name][here].mean(),
            expected,
            _wide(runs[name][here], name),
            OURS,
            CONFLICT if name == "nuclear" else "",
        )
        for name, said, expected in zip(("frobenius", "nuclear"), ("Frobenius", "nuclear"), EXPECTED[n, d], strict=True)
    ]


FIGURE = Figure(
    name="matrix-rank",
    title="Max-margin matrices: full rank in the Frobenius norm, low rank in the nuclear norm",
    caption=CAPTION,
    compute=compute,
    draw=draw,
    checks=checks,
    full=full,
)
