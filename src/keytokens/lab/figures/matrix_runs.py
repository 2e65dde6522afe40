"""Attention by a matrix on random problems: local and global optima, ranks, and several tokens under a ReLU head."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from ...base.errors import NotSeparable
from ...model.ragged import Bags, Index, Vector
from ..claims.instances import linear_start, sphere_ends
from ..descent.published import PlainProblem, published
from ..descent.stack import Stack, softmax_first
from ..endings import Endings
from ..problems.geometry import misalignment
from ..problems.logits import EPSILON
from ..problems.losses import Logistic
from ..problems.problem import Problem
from ..svm.matrix import attended_sets, matrix_problem, multi_token_svm, solve_matrix
from ..svm.nuclear import solve_nuclear
from ..svm.solution import NotSolved, Solution
from .figure import CODE, OURS, PAPER, Check, Sheet, Table, Tables, figure, table
from .look import BLUE, GREEN, ORANGE, STYLES, Axes
from .notebook_data import head_problem, sphere_problem
from .notebooks import EXACT
from .tables import WIDE, cosine, difference, endings, groupby, records, stacked, standard_error, summarised, where


def matrix_ends(
    problems: Sequence[Problem], W: Vector, K: Vector, Q: Vector, at: Sequence[int], how: str
) -> list[list[Vector]]:
    """W and K Q' after so many steps, (m, d e) each; plain arithmetic has the published floor and penalty."""
    trials = Stack.of(problems)
    m, n = len(trials), len(problems[0].keys)
    if how == EXACT:
        factors = [(k @ q.transpose(0, 2, 1)).reshape(m, -1) for k, q in trials.factor_path(at, 0.1, K, Q)]
        return [list(trials.path(at, 0.1, W.reshape(m, -1))), factors]
    keys = np.stack([one.values.rows.reshape(n, -1, one.values.dim) for one in problems])
    plain = PlainProblem(keys, trials.scores, queries=np.stack([one.queries for one in problems]))
    whole = published(plain, [W], max(at), 0.1, EPSILON, dtype=how, at=at)
    both = published(replace(plain, penalty=EPSILON), [K, Q], max(at), 0.1, EPSILON, dtype=how, at=at)
    products = [np.matmul(K.astype(np.float64), Q.astype(np.float64).transpose(0, 2, 1)) for K, Q in both]
    return [[x.astype(np.float64).reshape(m, -1) for x in path] for path in ([W for (W,) in whole], products)]


def in_plane_starts() -> tuple[Vector, Vector, Vector]:
    """W and Q at 0, K small, for one problem in the plane."""
    return np.zeros((1, 2, 2)), 0.1 * np.random.default_rng(0).normal(size=(1, 2, 2)), np.zeros((1, 2, 2))


def trained(count: int, at: Sequence[int], how: str = EXACT) -> tuple[Table, Table]:
    """The published random problems: every run at every step, W and K Q' one below the other; and a row a run.

    W, K and Q begin where linear layers do by default; which draw of these was published is not known.
    """
    problems = [sphere_problem(seed, 6, 8, 10) for seed in range(count)]
    trials = Stack.of(problems)
    starts = [linear_start(np.random.default_rng([1, seed]), 30, 10).reshape(3, 10, 10) for seed in range(count)]
    W, K, Q = np.stack(starts, axis=1)
    parts, ends, seeds = [], [], np.arange(count)
    for factors, path in enumerate(matrix_ends(problems, W, K, Q, at, how)):
        selections = trials.logits(path[-1]).argmax(axis=0)
        short, thin = zip(*map(both_solutions, problems, selections), strict=True)
        parts += [
            table(
                factors=factors,
                t=t,
                seed=seeds,
                attention=softmax_first(trials.logits(p)).max(axis=0).mean(axis=1),
                to_frobenius=[cosine(one, target.p) for one, target in zip(p, short, strict=True)],
                to_nuclear=[cosine(one, target.p) for one, target in zip(p, thin, strict=True)],
            )
            for t, p in zip(at, path, strict=True)
        ]
        found = Endings.of(trials, path[-1])
        ends.append(
            table(
                factors=factors,
                seed=seeds,
                saturated=found.saturated,
                local=found.is_local,
                best=found.is_global,
                gap=[one.gap for one in thin],
                frobenius_rank=[one.rank.absolute for one in short],
                nuclear_rank=[one.rank.absolute for one in thin],
            )
        )
    return stacked(parts), stacked(ends)


def both_solutions(problem: Problem, selection: Index | None = None) -> tuple[Solution, Solution]:
    """The max-margin matrices of a selection, or of the best tokens: in the Frobenius norm, in the nuclear norm."""
    chosen = problem.values.argmax(problem.scores) if selection is None else selection
    margins = matrix_problem(problem.values, problem.queries, chosen)
    short = solve_matrix(margins)
    return short, solve_nuclear(margins, short)


READ = "Read off the published picture, to about 0.005. The problems are the published ones, the starts are not known."
AT_LOCAL = (0, 25, 50, 75, 100, 150, 200, 300, 400, 600, 800, 1000, 1300, 1600, 2000)
NAMES_LOCAL = ("W trained", "(K, Q) trained")
WORDS = {"attention": "mean attention", "to_frobenius": "mean cos to Frobenius", "to_nuclear": "mean cos to nuclear"}
MEANS = (  # 0 for W, 1 for (K, Q); step, column, expected mean, source
    (0, 100, "attention", 0.75, CODE),
    (0, 200, "attention", 0.965, CODE),
    (0, 400, "attention", 1.0, CODE),
    (1, 100, "attention", 1.0, CODE),
    (0, 1000, "to_frobenius", 0.993, CODE),
    (0, 1000, "to_nuclear", 0.862, CODE),
    (0, 2000, "to_frobenius", 0.997, OURS),
    (0, 2000, "to_nuclear", 0.864, OURS),
    (1, 2000, "to_frobenius", 0.859, OURS),
    (1, 2000, "to_nuclear", 0.982, OURS),
)


def compute_local(small: bool) -> Tables:
    runs, ends = trained(15 if small else 100, AT_LOCAL)
    means = summarised(runs, ("factors", "t"), lambda some: {name: some[name].mean() for name in WORDS})
    return {"runs": runs, "ends": ends, "means": means}


def checks_local(tables: Tables) -> list[Check]:
    runs, ends = tables["runs"], tables["ends"]
    of_W = where(ends, factors=0)
    count, local, best = len(of_W["seed"]), of_W["local"].mean(), of_W["best"].mean()
    last = [where(runs, factors=factors, t=AT_LOCAL[-1]) for factors in (0, 1)]
    to_frobenius = [(end["to_frobenius"] > end["to_nuclear"]).mean() for end in last]
    return [
        Check.at_least("runs of W that end nearer to the Frobenius solution, share", to_frobenius[0], 0.9, PAPER),
        Check.at_least("runs of (K, Q) that end nearer to the nuclear one, share", 1 - to_frobenius[1], 0.9, PAPER),
        *(_mean_local(runs, *wanted) for wanted in MEANS),
        Check("runs of W that are locally optimal, share", local, 1.0, difference(local, count, 1.0, 20), OURS),
        Check("runs of W that are globally optimal, share", best, 0.75, difference(best, count, 0.75, 20), OURS),
        Check.at_most("largest duality gap of a nuclear solution", ends["gap"].max(), 1e-8, OURS),
        Check.at_least("least rank of a Frobenius solution", ends["frobenius_rank"].min(), 5, OURS),
    ]


def _mean_local(runs: Table, factors: int, t: int, column: str, expected: float, source: str) -> Check:
    """A mean of our runs against one of others: 100 published runs, or 20 of ours by another road."""
    here = where(runs, factors=factors, t=t)[column]
    published = source == CODE
    wide = WIDE * standard_error(here, 100 if published else 20) + (5e-3 if published else 5e-4)
    name = f"{WORDS[column]}, {NAMES_LOCAL[factors].removesuffix(' trained')}, t = {t}"
    return Check(name, here.mean(), expected, wide, source, READ if published else "")


@figure(
    "matrix-local",
    "Random problems: W goes to the Frobenius solution, (K, Q) to the nuclear one",
    compute_local,
    checks_local,
    sheet=Sheet(2, 3.7),
)
def draw_local(tables: Tables, left: Axes, right: Axes) -> None:
    """Six inputs of eight tokens in ten dimensions, tokens, queries and head uniform on the sphere, random labels, the
    published 100 problems; W, K and Q begin as linear layers do, steps of length 0.1 for each. Left: attention on the
    selected tokens, mean of all inputs. Right: cos to the max-margin matrix of the selected tokens, in the Frobenius
    norm (circles) and in the nuclear norm (squares). The paper's claim is that W goes to the first and (K, Q) to the
    second. The curves are means of all runs. The solutions here have rank 6 in the Frobenius norm and about 3 in the
    nuclear norm.
    """
    for factors, colour, form in ((0, BLUE, "-o"), (1, ORANGE, "--s")):
        mine, name = where(tables["means"], factors=factors), NAMES_LOCAL[factors]
        style: Any = {"color": colour, "markersize": 4}
        left.plot(mine["t"], mine["attention"], form, **style, label=name)
        right.plot(mine["t"], mine["to_frobenius"], "-o", **style, label=f"{name}, to Frobenius")
        right.plot(mine["t"], mine["to_nuclear"], "--s", **style, label=f"{name}, to nuclear")
    left.set_ylabel("attention on the selected tokens")
    right.set(ylabel="cos to the max-margin matrix", ylim=(0.0, 1.02))
    for panel in (left, right):
        panel.set_xlabel("steps t")
        panel.legend(loc="lower right")


CLOSE = """\
In few dimensions the margin may be so thin that the largest singular value is a thousand times another that is not \
zero: there the relative measure counts too few."""
CONFLICT = """\
The published picture has nuclear ranks near n (13.9 for n = d = 15). Certified optima have rank 4.7 there. The \
published code takes the default solver of its modelling package and counts singular values above 1e-7. Our benchmark \
of the solvers repeats that: rank 14 at 1e-7, but 5 at 1e-3 of the largest, and rows that miss their bound by 1e-6. So \
the published curve counts a solver's noise. Where a problem cannot be separated, that solver returns nothing, and the \
published code counts nothing as rank 1."""


def _by_dimension(
    panels: Sequence[Axes], found: Table, cases: Sequence[tuple[int, int]], columns: Mapping[str, str]
) -> None:
    """One panel by n and one by T, with a line against d for each case and column; columns are given with names."""
    for panel, some, name in ((panels[0], cases[:3], "n"), (panels[1], (cases[0], *cases[3:]), "T")):
        for (n, T), colour, mark in zip(some, (BLUE, ORANGE, GREEN), "osD", strict=True):
            here, said = where(found, n=n, T=T), f"{name} = {n if name == 'n' else T}"
            for (column, word), dashes in zip(columns.items(), ("-", "--"), strict=True):
                panel.plot(here["d"], here[column], dashes, color=colour, marker=mark, label=f"{said}, {word}")
        panel.set(xlabel="dimension d", title="T = 5 tokens" if name == "n" else "n = 5 inputs")


CASES_RANK = ((5, 5), (10, 5), (15, 5), (5, 10), (5, 15))  # n, T
DIMENSIONS_RANK = (2, 3, 4, 5, 10, 15, 20)
DRAWS = 8  # times the wanted number of problems, at most
# of ten separable problems each, by another solver: n, d -> Frobenius, nuclear
EXPECTED_RANK = {
    (5, 5): (4.8, 2.6),
    (5, 10): (5.0, 2.4),
    (5, 20): (5.0, 2.3),
    (10, 10): (10.0, 3.5),
    (10, 15): (10.0, 3.8),
    (15, 15): (15.0, 4.7),
    (15, 20): (15.0, 4.7),
}


def _tables_rank(count: int) -> Tables:
    runs = stacked(solved_runs(n, T, d, count) for n, T in CASES_RANK for d in DIMENSIONS_RANK)
    means = summarised(runs, ("n", "T", "d"), lambda some: {x: some[x].mean() for x in ("frobenius", "nuclear")})
    return {"runs": runs, "means": means}


def solved_runs(n: int, T: int, d: int, count: int) -> Table:
    """Ranks for the first published problems that can be separated, of eight times as many.

    A margin below what doubles can certify counts as none.
    """
    rows = list[dict[str, float]]()
    for seed in range(DRAWS * count):
        problem = sphere_problem(seed, n, T, d)
        with suppress(NotSeparable, NotSolved):
            short, thin = both_solutions(problem)
            ranks = {"nuclear": float(thin.rank.absolute), "nuclear_relative": float(thin.rank.relative)}
            rows.append({"seed": seed, "frobenius": float(short.rank.absolute), **ranks, "gap": thin.gap})
        if len(rows) == count:
            break
    return table(n=n, T=T, d=d, **records(rows)) if rows else {}


def checks_rank(tables: Tables) -> list[Check]:
    runs = tables["runs"]
    clear = (runs["nuclear"] == runs["nuclear_relative"])[runs["d"] >= 10]
    few = max(0.02, 1.5 / len(clear))
    low = runs["nuclear"] <= np.minimum(runs["n"], runs["d"])
    full_rank = runs["frobenius"] == np.minimum(runs["n"], runs["d"])
    wide = runs["d"] >= 10
    return [
        Check.at_most("largest duality gap", runs["gap"].max(), 1e-8, OURS),
        Check("nuclear ranks that agree by both measures, d ≥ 10, share", clear.mean(), 1.0, few, OURS, CLOSE),
        Check("nuclear ranks above min(n, d)", (~low).sum(), 0, 0, OURS),
        Check("Frobenius rank min(n, d) where d ≥ 10, share", full_rank[wide].mean(), 1.0, 0.05, CODE),
        *(check for key in EXPECTED_RANK for check in _ranks(runs, *key)),
    ]


def _ranks(runs: Table, n: int, d: int) -> list[Check]:
    here = where(runs, n=n, d=d, T=5)
    short, thin = here["frobenius"], here["nuclear"]
    frobenius, nuclear = EXPECTED_RANK[n, d]
    # nuclear ranks differ by about 0.5 from one problem to the next, also where a few happen to be equal
    wide = (
        max(WIDE * standard_error(short, 10), 0.25),
        WIDE * max(standard_error(thin, 10), 0.5 * np.sqrt(1 / len(thin) + 1 / 10)),
    )
    said = f"rank, n = {n}, T = 5, d = {d}"
    return [
        Check(f"mean Frobenius {said}", short.mean(), frobenius, wide[0], OURS),
        Check(f"mean nuclear {said}", thin.mean(), nuclear, wide[1], OURS, CONFLICT),
    ]


@figure(
    "matrix-rank",
    "Max-margin matrices: full rank in the Frobenius norm, low rank in the nuclear norm",
    lambda small: _tables_rank(3 if small else 20),
    checks_rank,
    full=lambda: _tables_rank(100),
    sheet=Sheet(2, 4.4),
)
def draw_rank(tables: Tables, *panels: Axes) -> None:
    """n inputs of T tokens in d dimensions, tokens, queries and head uniform on the sphere, random labels; the best
    tokens are to be separated. Mean ranks of the max-margin matrices over problems that can be separated: full lines
    for the Frobenius norm, dashed ones for the nuclear norm. The Frobenius solution has rank min(n, d), less an input
    now and then whose rows are all slack. Every nuclear solution is certified by a duality gap of at most 1e-8; its
    rank is the same, but for about one problem in a hundred, whether singular values below 1e-7 or below 1e-3 of the
    largest count as zero.
    """
    _by_dimension(panels, tables["means"], CASES_RANK, {"frobenius": "Frobenius", "nuclear": "nuclear"})
    for panel in panels:
        panel.set(ylabel="mean rank", ylim=(0, None), xticks=DIMENSIONS_RANK)
        panel.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.08))


CASES_GLOBAL = ((5, 5), (10, 5), (20, 5), (5, 10), (5, 15))  # n, T
DIMENSIONS_GLOBAL = (2, 5, 10, 20, 40)
STEPS, LENGTH = 1200, 0.2


def _tables_global(count: int, longer: int = 1) -> Tables:
    """`longer`: steps that are so many times as long, and fewer."""
    runs = stacked(_runs_global(n, T, d, count, longer) for n, T in CASES_GLOBAL for d in DIMENSIONS_GLOBAL)

    def shares(group: Table) -> dict[str, float]:
        return {"runs": len(group["d"]), **{name: group[name].mean() for name in ("saturated", "local", "best")}}

    return {"runs": runs, "shares": summarised(runs, ("n", "T", "d"), shares)}


def _runs_global(n: int, T: int, d: int, count: int, longer: int) -> Table:
    found = sphere_ends(n, T, d, range(count), STEPS // longer, longer * LENGTH)
    return {**endings(found, n=n, T=T, d=d, seed=np.arange(count)), "one_minus_cos": found.distance}


def checks_global(tables: Tables) -> list[Check]:
    runs, shares = tables["runs"], tables["shares"]
    settled = runs["saturated"] & (runs["d"] >= 5)
    cos = 1 - runs["one_minus_cos"][settled & runs["local"]]
    rises = [np.diff(where(shares, n=n, T=T)["best"])[[0, -1]].sum() > 0 for n, T in CASES_GLOBAL]
    return [
        Check("cases whose global share grows with d", sum(rises), len(CASES_GLOBAL), 0, PAPER),
        Check.at_least("locally optimal among saturated runs, d ≥ 5, share", runs["local"][settled].mean(), 0.92, OURS),
        Check.at_least("mean cos to the max-margin matrix, d ≥ 5", cos.mean(), 0.995, OURS),
    ]


@figure(
    "matrix-global",
    "Attention by a matrix: the global optimum is found more often in more dimensions",
    lambda small: _tables_global(8, 3) if small else _tables_global(40),
    checks_global,
    full=lambda: _tables_global(500),
    sheet=Sheet(2, 4.2),
)
def draw_global(tables: Tables, *panels: Axes) -> None:
    """n inputs of T tokens in d dimensions, tokens, queries and head uniform on the sphere, random labels. Normalised
    descent on W from 0, 1,200 steps of length 0.2; share of the runs that end saturated on the best tokens of all
    inputs, and whose max-margin matrix is locally optimal. The follow-up (arXiv:2308.16898) states that more parameters
    make the problem separable and the landscape benign; it prints no numbers that we have. Steps, length and start are
    ours.
    """
    shares = tables["shares"]
    percent = {**shares, "best": 100 * shares["best"], "local": 100 * shares["local"]}
    _by_dimension(panels, percent, CASES_GLOBAL, {"best": "global", "local": "local"})
    for panel in panels:
        panel.set(xscale="log", ylabel="percent of the runs")
        panel.set_xticks(DIMENSIONS_GLOBAL, [str(d) for d in DIMENSIONS_GLOBAL])
        panel.minorticks_off()
        panel.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.08), fontsize=7)


FLOOR = """\
Read off the published picture. As in the published code 2.2e-16 is added to the length of the gradient, so that runs \
end at |W| of about 60. That matters here: an input that rests on a flat piece of the head, all units off, pulls no \
more, and without the floor the other inputs go on to |W| = 200 and decide its attention too: for d = 4 the mean is \
then 0.11, not 0.05. A few runs make most of a mean: with less than 500 of them up to twice is let pass."""
IDENTITY = "No matter of luck: the finite part is the projection of W on the rows that tie the kept tokens."
DIMENSIONS_SEVERAL = (4, 6, 8, 10)
AT_SEVERAL = (10, 50, 100, 200, 400, 700, 1000, 1500, 2001)
BLOCK = 250  # problems at a time
NAMES_SEVERAL = ("both", "direction", "one")
SAID = ("direction and finite part", "direction, all kept tokens", "one token an input")
# 1 - cos at the end, read off the published picture: direction and finite part, direction, one token
PUBLISHED = {
    4: (0.034, 0.071, 0.155),
    6: (0.0166, 0.043, 0.144),
    8: (0.0112, 0.015, 0.136),
    10: (0.0056, 0.0087, 0.123),
}


def _tables_several(wanted: int, most: int) -> Tables:
    """The first `wanted` runs that have decided, of at most `most`, for each d; in plain arithmetic, as published."""
    found = {d: _kept(d, wanted, most) for d in DIMENSIONS_SEVERAL}
    runs = stacked(kept for kept, _ in found.values())
    return {
        "runs": where(runs, t=AT_SEVERAL[-1]),
        "drawn": table(d=list(found), drawn=[drawn for _, drawn in found.values()]),
        "way": summarised(where(runs, d=4), ["t"], lambda some: {name: some[name].mean() for name in NAMES_SEVERAL}),
    }


def _kept(d: int, wanted: int, most: int) -> tuple[Table, int]:
    runs: Table = {}
    for begin in range(1, most + 1, BLOCK):
        runs = stacked([runs, kept_runs(d, range(begin, min(begin + BLOCK, most + 1)), AT_SEVERAL)])
        seeds = np.unique(runs.get("seed", ()))
        if len(seeds) >= wanted:
            few = runs["seed"] <= seeds[wanted - 1]
            return {name: column[few] for name, column in runs.items()}, int(seeds[wanted - 1])
    return runs, most


def kept_runs(d: int, seeds: Iterable[int], at: Sequence[int], how: str = "float64") -> Table:
    """1 - cos of W to three predictions, at every step, of the published problems whose runs have decided."""
    drawn = {seed: head_problem(seed, 3, 4, d) for seed in seeds}
    drawn = {seed: one for seed, one in drawn.items() if (one[2] < 0).any()}
    V, x, labels, z = (np.stack(part) for part in zip(*drawn.values(), strict=True))
    W = np.stack([linear_start(np.random.default_rng([d, seed]), d, d) for seed in drawn])
    trials = Stack.under_relu(x, z, labels, V, Logistic())
    if how == EXACT:
        path = list(trials.path(at, 0.1, W.reshape(len(W), -1)))
    else:
        plain = PlainProblem(x, values=x, labels=labels, queries=z, relu=V)
        blocks = published(plain, [W], max(at), 0.1, EPSILON, dtype=how, at=at)
        path = [one.astype(np.float64).reshape(len(W), -1) for (one,) in blocks]
    attention = softmax_first(trials.logits(path[-1])).transpose(1, 2, 0).reshape(len(W), -1)
    rows = list[dict[str, Any]]()
    for k, seed in enumerate(drawn):
        found = _predictions(Bags.of(x[k]), z[k], attention[k], path[-1][k])
        for t, p in zip(at, path, strict=True) if found else ():
            away = {name: misalignment(p[k], target) for name, target in zip(NAMES_SEVERAL, found[1:], strict=True)}
            rows.append({"d": d, "seed": seed, "t": t, "tokens": found[0], **away})
    return records(rows) if rows else {}


def _predictions(bags: Bags, queries: Vector, attention: Vector, W: Vector) -> tuple[Any, ...]:
    """Tokens that keep attention, and three predictions of W; () where a run has not decided for separable sets."""
    sets = attended_sets(bags, attention)
    if sets is None:
        return ()
    with suppress(NotSeparable, NotSolved), np.errstate(divide="ignore"):
        several = multi_token_svm(bags, queries, sets, np.log(attention))
        single = solve_matrix(matrix_problem(bags, queries, bags.argmax(attention)))
        return sum(map(len, sets)), several.prediction(W.reshape(several.finite.shape)), several.direction.p, single.p
    return ()


def checks_several(tables: Tables) -> list[Check]:
    runs = tables["runs"]
    several = runs["tokens"] > 3
    better = (runs["both"] < runs["one"])[several].mean()
    worse = (runs["both"] > runs["direction"] + 1e-12).sum()
    return [
        Check.at_least("several tokens kept: direction and finite part beat one token, share", better, 0.8, CODE),
        Check("runs that the finite part makes worse", worse, 0, 0, OURS, IDENTITY),
        Check.at_least("runs that keep several tokens of an input, share", several.mean(), 0.5, OURS),
        *(_mean_several(runs, d, k) for d in DIMENSIONS_SEVERAL for k in (0, 2)),
    ]


def _mean_several(runs: Table, d: int, k: int) -> Check:
    here, expected = where(runs, d=d)[NAMES_SEVERAL[k]], PUBLISHED[d][k]
    # the picture is read to 0.005
    wide = max(WIDE * standard_error(here, 500), 0.005 if len(here) >= 500 else expected)
    return Check(f"mean 1 − cos, {SAID[k]}, d = {d}", here.mean(), expected, wide, CODE, FLOOR)


@figure(
    "matrix-several",
    "A head that bends: attention on several tokens, and the matrix that predicts it",
    lambda small: _tables_several(15, 125) if small else _tables_several(40, 750),
    checks_several,
    full=lambda: _tables_several(500, 40_000),
    sheet=Sheet(2, 3.7),
)
def draw_several(tables: Tables, left: Axes, right: Axes) -> None:
    """Three inputs of four tokens, f = 1'relu(V'r) of the pooled token r, tokens and queries uniform on the sphere, at
    least one label −1, the published problems; descent on W in double precision, 2,001 steps of length 0.1. Under such
    a head attention may end on several tokens of an input. Runs are kept that end with every token above 1e-3 or at
    most 1e-6 of attention. 1 − cos between W and three predictions: the max-margin matrix of the one token with most
    attention; that of all tokens that keep attention (the direction); the direction and a finite part that gives those
    tokens their shares. The follow-up (arXiv:2308.16898) proposes the last for heads that are not linear. Left: at the
    end. Right: along the way, d = 4.
    """
    way = tables["way"]
    for name, said, style in zip(NAMES_SEVERAL, SAID, STYLES[:3], strict=True):
        columns = [group[name] for _, group in groupby(tables["runs"], "d")]
        means, errors = [x.mean() for x in columns], [standard_error(x) for x in columns]
        left.errorbar(DIMENSIONS_SEVERAL, means, errors, **style.all, capsize=3, label=said)
        right.loglog(way["t"], way[name], **style.all, label=said)
    left.set_yscale("log")
    left.set_xticks(DIMENSIONS_SEVERAL)
    left.set(xlabel="dimension d", ylabel="mean 1 − cos at the end")
    left.legend(loc="lower left")
    right.set(xlabel="steps t", ylabel="mean 1 − cos, d = 4")
