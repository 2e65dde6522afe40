"""Max-margin problems of attention: `python -m benchmarks.svm`.

Against cvxopt (the full QP, dense, as published code solves it) on 1,000 inputs of 50 tokens in 100 dimensions, with
the residuals of both; then seconds and peak memory against rows and against d. Every line is a process of its own.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Sequence

import numpy as np

from benchmarks.measure import peak_megabytes, seconds
from keytokens.svm import MarginProblem, MarginSolution, solve

DUEL = (1_000, 50, 100)  # inputs, tokens of each, d
MILLION = (20_000, 51, 50)
BY_ROWS = [(n, 51, 50) for n in (200, 2_000, 20_000)]
BY_DIM = [(400, 51, d) for d in (30, 100, 300, 1_000)]
FASTER, MEMORY_MB = 15, 3_000  # the bars
REPEATS = 3


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


def by_cvxopt(problem: MarginProblem, tolerance: float | None = None) -> MarginSolution:
    """P = I, q = 0, -A p <= -b. Without a tolerance: its defaults."""
    from cvxopt import matrix, solvers

    names = ("abstol", "reltol", "feastol")
    options = {"show_progress": False} | (dict.fromkeys(names, tolerance) if tolerance else {})
    A = problem.rows(np.arange(len(problem)))
    found = solvers.qp(
        matrix(np.eye(problem.dim)), matrix(np.zeros(problem.dim)), matrix(-A), matrix(-problem.b), options=options
    )
    return MarginSolution(problem, np.array(found["x"]).ravel(), np.array(found["z"]).ravel(), np.zeros(0))


CONTENDERS = {
    "keytokens": solve,
    "cvxopt": by_cvxopt,
    "cvxopt, tight": lambda problem: by_cvxopt(problem, 1e-10),
}


def measure(contender: str, n: int, T: int, d: int) -> dict[str, float]:
    answers: list[MarginSolution] = []
    keys, selection = separable(n, T, d)
    problems: list[MarginProblem] = []
    build = seconds(lambda: problems.append(MarginProblem.from_selection(keys, selection)))
    problem = problems[0]
    taken = seconds(lambda: answers.append(CONTENDERS[contender](problem)))
    figures = {"rows": len(problem), "build_s": build, "solve_s": taken, "peak_mb": peak_megabytes()}
    return figures | {"norm": answers[0].norm} | answers[0].residuals()


def in_fresh_process(contender: str, case: tuple[int, int, int]) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.svm", "--one", contender, "--case", *map(str, case)]
    child = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if child.returncode:
        raise SystemExit(f"benchmarks: `{' '.join(command[1:])}` failed with exit code {child.returncode}, see above")
    return json.loads(child.stdout.splitlines()[-1])


def medians(contender: str, case: tuple[int, int, int], repeats: int) -> dict[str, float]:
    runs = [in_fresh_process(contender, case) for _ in range(repeats)]
    return {figure: statistics.median(run[figure] for run in runs) for figure in runs[0]}


def line(name: str, case: tuple[int, int, int], f: dict[str, float]) -> str:
    worst = max(f[name] for name in ("primal", "dual", "stationary", "gap"))
    return (
        f"{name:14}{case[2]:6}{f['rows']:10.0f}{f['build_s']:9.2f}{f['solve_s']:9.3f}{f['peak_mb']:9.0f}"
        f"   {f['primal']:.0e} {f['dual']:.0e} {f['stationary']:.0e} {f['gap']:.0e}   {worst:.0e}"
    )


def duel(repeats: int) -> None:
    figures = {}
    for name in CONTENDERS:
        figures[name] = medians(name, DUEL, repeats)
        print(line(name, DUEL, figures[name]), flush=True)
    ratio = figures["cvxopt"]["solve_s"] / figures["keytokens"]["solve_s"]
    print(f"{ratio:.0f} times faster than cvxopt, bar {FASTER}: {'kept' if ratio >= FASTER else 'MISSED'}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--one", choices=CONTENDERS, help="measure one contender here, on --case")
    parser.add_argument("--case", type=int, nargs=3, default=DUEL, help="inputs, tokens of each, d")
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(measure(options.one, *options.case)))
        return
    print(f"{'':14}{'d':>6}{'rows':>10}{'build s':>9}{'solve s':>9}{'peak MB':>9}   primal dual stationary gap   worst")
    duel(options.repeats)
    for case in [*BY_ROWS, *BY_DIM]:
        figures = medians("keytokens", case, options.repeats)
        print(line("keytokens", case, figures), flush=True)
        if case == MILLION:
            print(f"peak {figures['peak_mb']:.0f} MB, bar {MEMORY_MB}: "
                  f"{'kept' if figures['peak_mb'] < MEMORY_MB else 'MISSED'}")  # fmt: skip


if __name__ == "__main__":
    main()
