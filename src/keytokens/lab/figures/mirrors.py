"""Mirror descent in three norms: on attention alone, and together with the head."""

from __future__ import annotations

import numpy as np

from ...model.ragged import Vector
from ...training.loop import run
from ..claims.instances import cross_spheres, two_inputs
from ..claims.matrices.mirrors import joint_target
from ..descent.stack import Stack
from ..descent.steps import DescentState, MirrorDescent, Normalised
from ..descent.trajectory import log_spaced
from ..problems.geometry import divergence
from ..svm.lq import solve_lq
from ..svm.problem import MarginProblem
from ..svm.solution import Solution
from .figure import CODE, OURS, PAPER, Check, Sheet, Table, Tables, figure, table
from .look import GREY, STYLES, Axes
from .tables import WIDE, last, stacked, where

STEPS = {1.75: 1500, 2.0: 2000, 3.0: 20_000}  # of the published runs, by exponent
OTHERS = """\
The published picture shows 0.006 for q = 3 after 20,000 steps; its other two curves, 0.183 and 0.213, compare with \
tokens that runs of another q have selected. Here all three curves are for the tokens of the run itself."""


def compute_norms(small: bool) -> Tables:
    if small:
        return _tables({1.75: 5, 2.0: 5, 3.0: 2}, {**STEPS, 3.0: 2500})
    return _tables({1.75: 40, 2.0: 40, 3.0: 20}, STEPS)


def _tables(runs: dict[float, int], steps: dict[float, int]) -> Tables:
    found = [_runs(q, count, steps[q]) for q, count in runs.items()]
    return {"random": stacked(one for one, _ in found), "zero": stacked(other for _, other in found)}


def _runs(q: float, count: int, steps: int) -> tuple[Table, Table]:
    """Divergences, at log-spaced steps, to the three max-margin matrices of what each run selects at its end.

    The means of so many runs from random starts; and one run from W = 0 on the first of the problems.
    """
    draws = [np.random.default_rng([seed, 1]) for seed in range(1, count + 1)]
    problems = [cross_spheres(draw, 6, 8, 10) for draw in draws]
    start = np.array([*(draw.normal(size=100) for draw in draws), np.zeros(100)])
    at = log_spaced(steps, 6)[1:].tolist()
    trials = Stack.of([*problems, problems[0]])
    seen = trials.mirror_path(q, at, start, 0.1)
    targets = targets_of(trials, seen[-1])
    away = np.array([divergences(targets, W, q) for W in seen])  # (steps, runs, targets)
    gap = max(one.residuals()["gap"] for row in targets for one in row)
    return _table(q, at, away[:, :-1], gap), _table(q, at, away[:, -1:], gap)


def targets_of(trials: Stack, W: Vector) -> list[list[Solution]]:
    """For each run, the max-margin solutions of the tokens that it selects, one an exponent."""
    selections = trials.logits(W).argmax(axis=0)
    problems = [MarginProblem.from_selection(trials[k].keys, row) for k, row in enumerate(selections)]
    return [[solve_lq(problem, q) for q in STEPS] for problem in problems]


def divergences(targets: list[list[Solution]], W: Vector, q: float) -> Vector:
    """(m, exponents) from each W to each of its targets, all in the geometry of the run's own exponent q."""
    return np.array([[divergence(one.p, w, q) for one in row] for row, w in zip(targets, W, strict=True)])


def _table(q: float, at: list[int], away: Vector, gap: float) -> Table:
    columns = {f"l{e:g}": away[:, :, k].mean(axis=1) for k, e in enumerate(STEPS)}
    spreads = {f"l{e:g}_spread": away[:, :, k].std(axis=1) for k, e in enumerate(STEPS)}
    return table(q=f"{q:g}", runs=away.shape[1], gap=gap, t=at, **columns, **spreads)


def checks_norms(tables: Tables) -> list[Check]:
    worst = float(max(tables["random"]["gap"].max(), tables["zero"]["gap"].max()))
    found, ends = [Check.at_most("certified gaps of all max-margin matrices", worst, 1e-8, OURS)], {}
    for q in STEPS:
        mine, own = where(tables["random"], q=f"{q:g}"), f"l{q:g}"
        ends[q] = end = last(mine)
        other = min(end[f"l{e:g}"] for e in STEPS if e != q)
        early = float(mine[own][np.searchsorted(mine["t"], end["t"] / 10)])
        found += [
            Check.at_most(f"q = {q:g}: own divergence beside the least other one", end[own] / other, 0.5, PAPER),
            Check.at_most(f"q = {q:g}: own divergence, end beside a tenth of the steps", end[own] / early, 0.5, PAPER),
        ]
    found += [
        Check.at_most("q = 1.75: own divergence", ends[1.75]["l1.75"], 0.007, OURS),
        Check.at_most("q = 2: own divergence", ends[2.0]["l2"], 0.0096, OURS),
    ]
    if ends[3.0]["t"] < STEPS[3.0]:
        return found
    error = ends[3.0]["l3_spread"] / np.sqrt(ends[3.0]["runs"])
    return [*found, Check("q = 3: own divergence", ends[3.0]["l3"], 0.006, 5e-3 + WIDE * error, CODE, OTHERS)]


@figure(
    "mirror-norms",
    "Mirror descent: each norm has its own max-margin direction",
    compute_norms,
    checks_norms,
    full=lambda: _tables(dict.fromkeys(STEPS, 100), STEPS),
    sheet=Sheet(3, 3.6),
)
def draw_norms(tables: Tables, *panels: Axes) -> None:
    """Six inputs with eight tokens in ten dimensions, tokens, queries and head uniform on the sphere, random
    labels; W begins at random. Mirror descent on sign(W) |W|^(q−1) with normalised steps of 0.1, for q = 1.75, 2
    and 3. The paper states that the direction tends to the matrix of least norm |W|_q that puts the selected tokens
    above the others. Drawn (ours): the Bregman divergence from each run to the max-margin matrices, in three norms,
    of the tokens that the run itself selects; mean over the runs. Only that of the run's own q goes to 0.
    """
    for panel, q in zip(panels, STEPS, strict=True):
        mine, zero = (where(tables[name], q=f"{q:g}") for name in ("random", "zero"))
        for style, e in zip(STYLES, STEPS, strict=False):
            panel.loglog(mine["t"], mine[f"l{e:g}"], **style.all, markevery=3, label=f"to the matrix of q = {e:g}")
        panel.loglog(zero["t"], zero[f"l{q:g}"], **STYLES[5].line, linewidth=1, label=f"q = {q:g}, one run from W = 0")
        panel.set(title=f"descent in the norm q = {q:g}", xlabel="steps t", ylim=(5e-5, 1.5))
        panel.legend(loc="lower left", fontsize=7)
    panels[0].set_ylabel("Bregman divergence of the directions")


SELECTED = {1.75: (1, 0), 2.0: (1, 0), 3.0: (0, 0)}


def compute_joint(small: bool) -> Tables:
    steps = {q: min(count, 2000) if small else count for q, count in STEPS.items()}
    return {"runs": stacked(_run(q, steps[q]) for q in STEPS)}


def _run(q: float, steps: int) -> Table:
    """One run at log-spaced steps, and at 100."""
    problem, wanted = two_inputs(), frozenset([*log_spaced(steps, 12)[1:].tolist(), 100])
    seen: list[DescentState] = []
    method, zero = MirrorDescent(problem, Normalised(0.1), q=q), (np.zeros(2), np.zeros((2, 2)))
    run(method, zero, steps, lambda state: seen.append(state) if state.t in wanted else None)
    readings = [state.reading for state in seen]
    target = joint_target(problem, readings[-1].selection, q)
    away = np.array([target.divergences(state.blocks) for state in seen])
    return table(
        q=f"{q:g}",
        t=[state.t for state in seen],
        first=[int(reading.selection[0]) for reading in readings],
        second=[int(reading.selection[1]) for reading in readings],
        attention=[reading.attention[reading.selected].mean() for reading in readings],
        probability=[np.mean(1 / (1 + np.exp(-reading.margins))) for reading in readings],
        W=away[:, 0],
        v=away[:, 1],
        gap=max(x.residuals()["gap"] for x in (target.attention, target.head)),
    )


def checks_joint(tables: Tables) -> list[Check]:
    found = []
    for q, (first, second) in SELECTED.items():
        mine = where(tables["runs"], q=f"{q:g}")
        early, end = last(where(mine, t=100)), last(mine)
        found += [
            Check(f"q = {q:g}: token selected in the first input", end["first"], first, 0, CODE),
            Check(f"q = {q:g}: token selected in the second input", end["second"], second, 0, CODE),
            Check(f"q = {q:g}: attention after 100 steps", early["attention"], 1, 1e-3, CODE),
            Check(f"q = {q:g}: probability after 100 steps", early["probability"], 1, 1e-3, CODE),
            Check.at_most(f"q = {q:g}: divergence of W, end beside step 100", end["W"] / early["W"], 0.3, PAPER),
            Check.at_most(f"q = {q:g}: divergence of v, end beside step 100", end["v"] / early["v"], 0.3, PAPER),
        ]
        if end["t"] == STEPS[q]:
            found += _divergences(mine, q)
    gap = float(tables["runs"]["gap"].max())
    return [*found, Check.at_most("certified gaps of all max-margin solutions", gap, 1e-8, OURS)]


def _divergences(mine: Table, q: float) -> list[Check]:
    """At the end of a run of the published length; exact steps come nearer than any with a floor."""
    both = [(f"q = {q:g}: divergence of {name}", float(mine[name][-1])) for name in ("W", "v")]
    if q == 3.0:
        return [Check(*one, *known, OURS) for one, known in zip(both, ((9e-5, 6e-6), (5e-4, 6e-5)), strict=True)]
    return [
        Check.at_most(*one, most, OURS) for one, most in zip(both, ({1.75: 9e-5, 2.0: 2.6e-3}[q], 1e-5), strict=True)
    ]


@figure(
    "mirror-joint",
    "Mirror descent on head and attention: the norm decides which token wins",
    compute_joint,
    checks_joint,
    sheet=Sheet(2, 3.9),
)
def draw_joint(tables: Tables, left: Axes, right: Axes) -> None:
    """Two inputs of three tokens in the plane with labels 1 and −1; the query of each is its first token. Head v
    and attention W are trained together from 0 by mirror descent with normalised steps of 0.1, for q = 1.75, 2 and
    3. Published code stores which tokens the runs select: for q = 3 another one in the first input than for the
    other two. Left: attention on the selected tokens and probability of the labels; both are 1 within a hundred
    steps. Right (ours): the Bregman divergence from the direction of W, and of v, to the max-margin solutions of
    the selected tokens. A gradient below any floating-point number still has a direction, so no run ends early and
    none overflows.
    """
    for style, q in zip(STYLES, STEPS, strict=False):
        mine = where(tables["runs"], q=f"{q:g}")
        early, tokens = mine["t"] <= 100, f"[{mine['first'][-1]}, {mine['second'][-1]}]"
        left.semilogx(
            mine["t"][early], mine["attention"][early], **style.all, markevery=2, label=f"q = {q:g} selects {tokens}"
        )
        left.semilogx(mine["t"][early], mine["probability"][early], **style.line, linewidth=0.8)
        some = np.isfinite(mine["W"])  # at the first step W has not moved
        right.loglog(mine["t"][some], mine["W"][some], **style.all, markevery=4, label=f"W, q = {q:g}")
        right.loglog(mine["t"], mine["v"], **style.line, linewidth=0.8, label=f"v, q = {q:g}")
    left.plot([], [], color=GREY, linewidth=0.8, label="thin: probability of the labels")
    left.set_ylabel("mean attention on the selected tokens, probability")
    right.set_ylabel("Bregman divergence of the directions")
    left.legend(loc="lower right")
    right.legend(loc="lower left", ncols=2, fontsize=7)
    for panel in (left, right):
        panel.set_xlabel("steps t")
