"""Max-margin matrices beside cvxpy with its default solvers: `python -m benchmarks.matrix`.

The sizes of the published figure of ranks: n inputs of T tokens in d dimensions, on the sphere, in the Frobenius norm
and in the nuclear norm. cvxpy is given the rows one by one, as published, and all at once. Every contender, norm and
round is a process of its own; the first problem of a process is not counted.
"""

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.measure import (
    in_fresh_process,
    in_rounds,
    installed,
    options_of,
    publish,
    surroundings,
    table,
    timed,
    verdict,
    with_range,
    write_csv,
)
from keytokens.base.errors import NotSeparable
from keytokens.lab.claims.instances import cross_spheres
from keytokens.lab.svm import MarginProblem, matrix_problem, solve_matrix, solve_nuclear
from keytokens.lab.svm.solution import Rank

Case = tuple[int, int, int]  # n, T, d
Record = dict[str, Any]

CASES: list[Case] = [(5, 5, 5), (5, 5, 10), (5, 5, 20), (10, 5, 10), (10, 5, 15), (15, 5, 15), (15, 5, 20), (5, 15, 20)]
FASTER = {"frobenius": 20, "nuclear": 5}  # the bars, beside cvxpy as published
PUBLISHED = "cvxpy, row by row"
REPEATS = 5
SOLVES = 5  # of each problem in a process; the median counts


def separable(case: Case, seed: int) -> MarginProblem:
    """The first problem from this seed on whose best tokens can be separated."""
    for number in range(1000):
        one = cross_spheres(np.random.default_rng([*case, seed, number]), *case)
        problem = matrix_problem(one.values, one.queries, one.values.argmax(one.scores))
        try:
            solve_matrix(problem)
        except NotSeparable:
            continue
        return problem
    raise SystemExit(f"benchmarks: no separable problem among 1000 of size {case}")


# The contenders: a problem and the name of a norm -> W ---------------------------------------------------------------


def by_keytokens(problem: MarginProblem, norm: str) -> np.ndarray:
    return solve_matrix(problem).W if norm == "frobenius" else solve_nuclear(problem).W


def by_cvxpy(problem: MarginProblem, norm: str, together: bool) -> np.ndarray:
    import cvxpy

    rows: Any = problem.inequalities
    left, right = rows.left, rows.right[rows.bag]
    W = cvxpy.Variable(rows.shape)
    if together:
        constraints = [cvxpy.sum(cvxpy.multiply(left @ W, right), axis=1) >= 1]
    else:
        constraints = [x[None] @ W @ z[:, None] >= 1 for x, z in zip(left, right, strict=True)]
    kind = {"frobenius": "fro", "nuclear": "nuc"}[norm]
    cvxpy.Problem(cvxpy.Minimize(cvxpy.norm(W, kind)), constraints).solve()
    return np.asarray(W.value)


CONTENDERS: dict[str, tuple[str, Callable[[MarginProblem, str], np.ndarray]]] = {
    "keytokens": ("keytokens", by_keytokens),
    PUBLISHED: ("cvxpy", lambda problem, norm: by_cvxpy(problem, norm, together=False)),
    "cvxpy, all rows at once": ("cvxpy", lambda problem, norm: by_cvxpy(problem, norm, together=True)),
}


# One round, in a child -----------------------------------------------------------------------------------------------


def measure(contender: str, norm: str, cases: Sequence[Case], seed: int) -> list[Record]:
    act = CONTENDERS[contender][1]
    act(separable(cases[0], -seed - 1 + 10**6), norm)
    return [_measured(act, separable(case, seed), norm) | dict(zip("nTd", case, strict=True)) for case in cases]


def _measured(act: Callable[[MarginProblem, str], np.ndarray], problem: MarginProblem, norm: str) -> Record:
    runs = [timed(lambda: act(problem, norm)) for _ in range(SOLVES)]
    W = runs[0][2]
    values = np.linalg.svd(W, compute_uv=False)
    rank = Rank.of(values)
    best = solve_nuclear(problem).bound if norm == "nuclear" else solve_matrix(problem).norm
    size = values.sum() if norm == "nuclear" else np.linalg.norm(W)
    return {
        "seconds": statistics.median(run[0] for run in runs),
        "processor_s": statistics.median(run[1] for run in runs),
        "excess": float(size / best - 1),
        "violation": float(max(0.0, 1 - problem.times(W.ravel()).min())),
        "rank_absolute": rank.absolute,
        "rank_relative": rank.relative,
    }


def all_records(names: Sequence[str], norms: Sequence[str], repeats: int) -> list[Record]:
    def job(name: str, norm: str) -> Callable[[int], list[Record]]:
        given = ["--one", name, "--norm", norm]
        return lambda seed: in_fresh_process([*given, "--seed", str(seed)], "benchmarks.matrix", 1)

    rounds = in_rounds({(name, norm): job(name, norm) for norm in norms for name in names}, repeats)
    return [
        {"contender": name, "norm": norm, "seed": seed} | record
        for (name, norm), each in rounds.items()
        for seed, records in enumerate(each)
        for record in records
    ]


# What they say -------------------------------------------------------------------------------------------------------


def ratios(records: Sequence[Record], norm: str, theirs: str, case: Case, clock: str = "seconds") -> list[float]:
    """Their seconds over ours, one a round."""
    sides = [
        [r[clock] for r in records if (r["contender"], r["norm"], r["n"], r["T"], r["d"]) == (name, norm, *case)]
        for name in (theirs, "keytokens")
    ]
    return [there / here for there, here in zip(*sides, strict=True)]


def report(records: Sequence[Record], norm: str, names: Sequence[str]) -> str:
    header = ["n", "T", "d", "", "ms", "times faster", "above the optimum", "violation", "rank, 1e-7", "rank, 1e-3"]
    lines = []
    for case in dict.fromkeys((r["n"], r["T"], r["d"]) for r in records):
        for name in names:
            mine = [r for r in records if (r["contender"], r["norm"], r["n"], r["T"], r["d"]) == (name, norm, *case)]
            faster = "" if name == "keytokens" else with_range(ratios(records, norm, name, case), ".1f")
            worst = [f"{max(r[key] for r in mine):.0e}" for key in ("excess", "violation")]
            ranks = [f"{statistics.mean(r[key] for r in mine):.1f}" for key in ("rank_absolute", "rank_relative")]
            milliseconds = with_range([1000 * r["seconds"] for r in mine], ".1f")
            lines.append([*map(str, case), name, milliseconds, faster, *worst, *ranks])
    return table(header, lines)


def verdicts(records: Sequence[Record], norm: str, names: Sequence[str]) -> list[str]:
    """The least of the median ratios over all sizes; a bar for the published form."""
    lines = []
    for name in names:
        if name != "keytokens":
            cases = dict.fromkeys((r["n"], r["T"], r["d"]) for r in records)
            medians, processor = (
                [statistics.median(ratios(records, norm, name, case, clock)) for case in cases]
                for clock in ("seconds", "processor_s")
            )
            bar = f", bar {FASTER[norm]}: {verdict(min(medians) >= FASTER[norm])}" if name == PUBLISHED else ""
            faster = f"{norm}: {min(medians):.1f} to {max(medians):.1f} times faster than {name}{bar}"
            lines.append(f"{faster}; in processor time {min(processor):.1f} to {max(processor):.1f}")
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options_of(__doc__, REPEATS)
    parser.add_argument("--norms", nargs="+", choices=FASTER, default=list(FASTER))
    parser.add_argument("--one", choices=CONTENDERS, help="measure one contender here, in --norm")
    parser.add_argument("--norm", choices=FASTER, default="nuclear")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(measure(options.one, options.norm, CASES, options.seed)))
        return
    libraries: Mapping[str, str] = {name: library for name, (library, _) in CONTENDERS.items()}
    names = installed(libraries)
    versions = surroundings(["numpy", "scipy", *(libraries[name] for name in names)])
    about = f"Medians of {options.repeats} (least to largest). {versions}.\n"
    records = all_records(names, options.norms, options.repeats)
    write_csv(options.output / "matrix.csv", records)
    parts = [
        f"## {norm} norm\n\n{report(records, norm, names)}\n\n"
        + "\n".join(f"- {line}" for line in verdicts(records, norm, names))
        for norm in options.norms
    ]
    text = "\n\n".join([about, *parts]) + "\n"
    publish(options.output / "matrix.md", text)


if __name__ == "__main__":
    main()
