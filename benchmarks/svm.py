"""Max-margin problems of attention: `python -m benchmarks.svm`.

duel   1,000 inputs of 50 tokens in 100 dimensions beside two QP solvers that are given all rows at once
rows   time and memory from 1,000 to 2 million rows, d = 50
dims   time from d = 10 to d = 400, 50,000 rows

Every run is a process of its own, and the contenders take turns. Each part writes its runs as a CSV file; `rows` and
`dims` are drawn too.
"""

import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import (
    in_fresh_process,
    in_rounds,
    installed,
    options_of,
    peak_megabytes,
    surroundings,
    table,
    timed,
    verdict,
    with_range,
    write_csv,
)
from keytokens.lab.svm import MarginProblem, Solution, solve

Case = tuple[int, int, int]  # inputs, tokens of each, d
Run = dict[str, float]
Runs = dict[tuple[str, Case], list[Run]]

DUEL: Case = (1_000, 50, 100)
MILLION: Case = (20_000, 51, 50)
BY_ROWS: list[Case] = [(n, 51, 50) for n in (20, 60, 200, 600, 2_000, 6_000, 20_000, 40_000)]
BY_DIM: list[Case] = [(1_000, 51, d) for d in (10, 25, 50, 100, 200, 400)]
PATIENCE = 300_000  # rows that the peers are given at most: the next case takes cvxopt a minute
LATE = {"rows": 100_000, "d": 100}  # from here on the law of growth is read off once more, clear of what is constant
FASTER, MEMORY_MB, SECONDS = 20, 3_000, 10  # the bars
REPEATS = 5
RESIDUALS = ("primal", "dual", "stationary", "gap")


def separable(n: int, T: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian keys; the selected token of each input is shifted along a hidden direction until it wins."""
    rng = np.random.default_rng(seed)
    q = rng.normal(size=d)
    q /= np.linalg.norm(q)
    keys, selection = rng.normal(size=(n, T, d)), rng.integers(0, T, n)
    a, each = keys @ q, np.arange(n)
    lift = a.max(axis=1) - a[each, selection] + 0.1 + rng.exponential(size=n)
    keys[each, selection] += lift[:, None] * q
    return keys, selection


# The contenders: what is prepared before the clock starts, and the solve that is timed -------------------------------

Solve = Callable[[], Solution]


def by_keytokens(problem: MarginProblem) -> Solve:
    return lambda: solve(problem)


def by_cvxopt(problem: MarginProblem, tolerance: float | None = None) -> Solve:
    """P = I, q = 0, -A p <= -b, an interior point method. Without a tolerance: its defaults."""
    from cvxopt import matrix, solvers

    names = ("abstol", "reltol", "feastol")
    options = {"show_progress": False} | (dict.fromkeys(names, tolerance) if tolerance else {})
    P, q = matrix(np.eye(problem.dim)), matrix(np.zeros(problem.dim))
    G, h = matrix(-_all_rows(problem)), matrix(-problem.b)

    def run() -> Solution:
        found = solvers.qp(P, q, G, h, options=options)
        return Solution(problem, np.array(found["x"]).ravel(), np.array(found["z"]).ravel(), np.zeros(0))

    return run


def by_quadprog(problem: MarginProblem) -> Solve:
    """The same active-set method as ours, on all rows at every step."""
    from quadprog import solve_qp

    G, a, C = np.eye(problem.dim), np.zeros(problem.dim), np.asfortranarray(_all_rows(problem).T)

    def run() -> Solution:
        found = solve_qp(G, a, C, problem.b)
        return Solution(problem, found[0], found[4], np.zeros(0))

    return run


def _all_rows(problem: MarginProblem) -> np.ndarray:
    return problem.rows(np.arange(len(problem)))


@dataclass(frozen=True)
class Contender:
    library: str
    prepare: Callable[[MarginProblem], Solve]
    threads: int = 1


CONTENDERS = {
    "keytokens": Contender("keytokens", by_keytokens),
    "cvxopt": Contender("cvxopt", by_cvxopt, threads=2),
    "cvxopt, one thread": Contender("cvxopt", by_cvxopt),
    "cvxopt, tolerance 1e-10": Contender("cvxopt", lambda problem: by_cvxopt(problem, 1e-10), threads=2),
    "quadprog": Contender("quadprog", by_quadprog),
}


# One run, in a child -------------------------------------------------------------------------------------------------


def measure(contender: str, case: Case, seed: int) -> Run:
    prepare = CONTENDERS[contender].prepare
    prepare(MarginProblem.from_selection(*separable(5, 3, 4)))()  # the first call of a library is not counted
    keys, selection = separable(*case, seed)
    building, _, problem = timed(lambda: MarginProblem.from_selection(keys, selection))
    solving, processor, answer = timed(prepare(problem))
    times = {"build_s": building, "solve_s": solving, "processor_s": processor}
    return {"rows": len(problem)} | times | {"peak_mb": peak_megabytes(), "norm": answer.norm} | answer.residuals()


def all_runs(cases: Iterable[tuple[str, Case]], repeats: int) -> Runs:
    """Round k has seed k: other data, the same for all contenders."""

    def job(contender: str, case: Case) -> Callable[[int], Run]:
        given = ["--one", contender, "--case", *map(str, case)]
        threads = CONTENDERS[contender].threads
        return lambda seed: in_fresh_process([*given, "--seed", str(seed)], "benchmarks.svm", threads)

    return in_rounds({key: job(*key) for key in cases}, repeats)


# What the runs say ---------------------------------------------------------------------------------------------------


def column(runs: Sequence[Run], figure: str) -> list[float]:
    return [run[figure] for run in runs]


def worst_residual(runs: Sequence[Run]) -> float:
    return max(run[name] for run in runs for name in RESIDUALS)


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """The exponent k of y = c x^k, by least squares of the logarithms.

    >>> round(slope([1.0, 10.0, 100.0], [2.0, 2e3, 2e6]), 9)
    3.0
    """
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def report(runs: Runs) -> str:
    header = ["", "d", "rows", "build, s", "solve, s", "peak, MB", *RESIDUALS]
    lines = []
    for (name, case), each in runs.items():
        worst = [f"{max(column(each, residual)):.0e}" for residual in RESIDUALS]
        times = [with_range(column(each, figure), ".3f") for figure in ("build_s", "solve_s")]
        peak = f"{max(column(each, 'peak_mb')):.0f}"
        lines.append([name, str(case[2]), f"{each[0]['rows']:,}", *times, peak, *worst])
    return table(header, lines)


def ratios_of(theirs: Sequence[Run], ours: Sequence[Run], figure: str) -> list[float]:
    """One ratio a round."""
    return [there[figure] / here[figure] for there, here in zip(theirs, ours, strict=True)]


def duel_verdicts(runs: Runs) -> list[str]:
    by_name = {name: each for (name, _), each in runs.items()}
    ours = by_name.pop("keytokens")
    lines = []
    for name, theirs in by_name.items():
        ratios, processor = (ratios_of(theirs, ours, figure) for figure in ("solve_s", "processor_s"))
        bar = f", bar {FASTER}: {verdict(statistics.median(ratios) >= FASTER)}" if name.startswith("cvxopt") else ""
        no_worse = worst_residual(ours) <= worst_residual(theirs)
        lines.append(
            f"{with_range(ratios, '.1f')} times faster than {name}{bar}; in processor time "
            f"{with_range(processor, '.1f')}; largest residual {worst_residual(ours):.0e} against "
            f"{worst_residual(theirs):.0e}, no worse: {verdict(no_worse)}"
        )
    return lines


def growth(points: Mapping[float, float], late: float) -> str:
    """The exponent of all points, and of those from `late` on.

    >>> growth({1.0: 1.0, 10.0: 10.0, 100.0: 1000.0}, late=10.0)
    '1.50, from 10 on 2.00'
    """
    tail = {x: y for x, y in points.items() if x >= late}
    exponents = [f"{slope(list(part), list(part.values())):.2f}" for part in (points, tail) if len(part) > 1]
    return f", from {late:,.0f} on ".join(exponents)


def curve(runs: Runs, name: str, axis: str, figure: str) -> dict[float, list[float]]:
    """Of one contender: rows or d -> all runs."""
    cases = {case: each for (contender, case), each in runs.items() if contender == name}
    return {(each[0]["rows"] if axis == "rows" else case[2]): column(each, figure) for case, each in cases.items()}


def medians(points: Mapping[float, Sequence[float]]) -> dict[float, float]:
    return {x: statistics.median(each) for x, each in points.items()}


def growth_verdicts(runs: Runs, axis: str) -> list[str]:
    return [
        f"{name}: solve time grows like {axis} to the power "
        + growth(medians(curve(runs, name, axis, "solve_s")), LATE[axis])
        for name in dict.fromkeys(name for name, _ in runs)
    ]


def rows_verdicts(runs: Runs) -> list[str]:
    lines = growth_verdicts(runs, "rows")
    if largest := runs.get(("keytokens", MILLION)):
        peak, total = max(column(largest, "peak_mb")), [run["build_s"] + run["solve_s"] for run in largest]
        fast = statistics.median(total) <= SECONDS
        lines.append(f"1,000,000 rows: peak {peak:.0f} MB, bar {MEMORY_MB}: {verdict(peak < MEMORY_MB)}")
        lines.append(f"1,000,000 rows: {with_range(total, '.2f')} s with building, bar {SECONDS}: {verdict(fast)}")
    return lines


def dims_verdicts(runs: Runs) -> list[str]:
    return growth_verdicts(runs, "d")


# Pictures ------------------------------------------------------------------------------------------------------------

COLOURS = {"keytokens": "#0072b2", "cvxopt": "#d55e00", "quadprog": "#777777"}  # told apart by every eye
MARKS = {"keytokens": "o", "cvxopt": "s", "quadprog": "^"}


def draw(runs: Runs, axis: str, path: Path) -> None:
    """Time and memory against `rows` or `d`, both logarithmic; bars from the least to the largest run."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "keytokens", "font.size": 10}
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    for name in dict.fromkeys(name for name, _ in runs):
        look = {"color": COLOURS[name], "marker": MARKS[name], "markersize": 5, "capsize": 3}
        solving = curve(runs, name, axis, "solve_s")
        label = f"{name}, slope {growth(medians(solving), LATE[axis])}"
        left.errorbar(**_bars(solving), label=label, **look)
        right.errorbar(**_bars(curve(runs, name, axis, "peak_mb")), label=name, **look)
    building = medians(curve(runs, "keytokens", axis, "build_s"))
    left.plot(building.keys(), building.values(), ":", color="black", linewidth=1, label="building the rows, for each")
    fixed = "d = 50" if axis == "rows" else "50,000 rows"
    if axis == "rows":
        right.plot([1e6], [MEMORY_MB], "_", color="black", markersize=24)
        right.annotate(f"bar {MEMORY_MB:,} MB", (1e6, MEMORY_MB), (-16, -4), textcoords="offset points", ha="right")
    for panel, title, unit in ((left, "time to solve", "seconds"), (right, "peak memory of the process", "MB")):
        panel.set(xscale="log", yscale="log", xlabel=axis, ylabel=unit, title=f"{title}, {fixed}")
        panel.grid(which="major", color="#dddddd", linewidth=0.6)
        panel.set_ylim(top=12 * panel.get_ylim()[1] if panel is left else None)  # room for the legend
        panel.legend(frameon=False, fontsize=9, loc="upper left")
    for ending, stamp in (("png", {"Software": None}), ("svg", {"Date": None})):
        figure.savefig(path.with_suffix(f".{ending}"), dpi=150, metadata=stamp)
    pyplot.close(figure)


def _bars(samples: Mapping[float, Sequence[float]]) -> dict[str, list[Any]]:
    middle = medians(samples)
    below = [middle[x] - min(each) for x, each in samples.items()]
    above = [max(each) - middle[x] for x, each in samples.items()]
    return {"x": list(middle), "y": list(middle.values()), "yerr": [below, above]}


# The parts -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    title: str
    runs: tuple[tuple[str, Case], ...]
    verdicts: Callable[[Runs], list[str]]
    axis: str = ""  # what is drawn against, if anything


def series(cases: Sequence[Case]) -> tuple[tuple[str, Case], ...]:
    """All cases for keytokens, those of at most `PATIENCE` rows for the peers."""
    small = [case for case in cases if case[0] * (case[1] - 1) <= PATIENCE]
    chosen = {"keytokens": cases, "cvxopt": small, "quadprog": small}
    return tuple((name, case) for name, given in chosen.items() for case in given)


PARTS = {
    "duel": Part("1,000 inputs of 50 tokens", tuple((name, DUEL) for name in CONTENDERS), duel_verdicts),
    "rows": Part("Against rows", series(BY_ROWS), rows_verdicts, "rows"),
    "dims": Part("Against the dimension", series(BY_DIM), dims_verdicts, "d"),
}


def play(name: str, part: Part, contenders: Sequence[str], repeats: int, folder: Path) -> str:
    runs = all_runs([run for run in part.runs if run[0] in contenders], repeats)
    records = [
        {"contender": contender, "inputs": n, "tokens": T, "d": d, "seed": seed} | run
        for (contender, (n, T, d)), each in runs.items()
        for seed, run in enumerate(each)
    ]
    write_csv(folder / f"svm_{name}.csv", records)
    if part.axis:
        draw(runs, part.axis, folder / f"svm_{name}.png")
    verdicts = "\n".join(f"- {line}" for line in part.verdicts(runs))
    return f"## {part.title}\n\n{report(runs)}\n\n{verdicts}\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options_of(__doc__, REPEATS)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--one", choices=CONTENDERS, help="measure one contender here, on --case")
    parser.add_argument("--case", type=int, nargs=3, default=DUEL, help="inputs, tokens of each, d")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(measure(options.one, tuple(options.case), options.seed)))
        return
    contenders = installed({name: contender.library for name, contender in CONTENDERS.items()})
    libraries = surroundings(["numpy", "scipy", *(CONTENDERS[name].library for name in contenders)])
    about = f"Medians of {options.repeats} (least to largest), largest memory and residuals. {libraries}.\n"
    print(about)
    options.output.mkdir(parents=True, exist_ok=True)
    for name in options.parts:
        text = play(name, PARTS[name], contenders, options.repeats, options.output)
        (options.output / f"svm_{name}.md").write_text(f"{about}\n{text}", encoding="utf-8")
        print(text, flush=True)


if __name__ == "__main__":
    main()
