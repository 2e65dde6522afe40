"""How soon a descent points where it must: `python -m benchmarks.descents`.

Attention trained on two published experiments, E1 (one input, three tokens) and E3 (three inputs, seven tokens), from
the six published starts of each. Ours run until 1 - cos to the max-margin direction is below 1e-6 for good; the loop
in PyTorch runs its published 1,000 steps. Every run is a process of its own, and the contenders take turns.
"""

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
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
from keytokens.lab.claims import instances as known
from keytokens.lab.descent import Descent, Flow, Normalised, run
from keytokens.lab.problems.problem import Problem
from keytokens.lab.svm import MarginProblem, solve
from keytokens.training.loop import Method

BELOW = 1e-6
FAR = 2e4  # the norm up to which "for good" is watched: ten times that at which 1 - cos falls below
STEPS, RATE = 1_000, 0.1  # of the published loop
REPEATS = 5


@dataclass(frozen=True)
class Experiment:
    problem: Problem
    starts: tuple[tuple[float, float], ...]
    floor: float  # what the published code adds to |g|

    @cached_property
    def target(self) -> np.ndarray:
        """The max-margin direction of the tokens with the best scores, which are the first of each input."""
        keys = self.problem.keys
        p = solve(MarginProblem.from_selection(keys, np.zeros(len(keys), int))).p
        return p / np.linalg.norm(p)

    def away(self, p: np.ndarray) -> float:
        """1 - cos, as half the squared distance of the unit vectors; at p = 0, which has no direction, 1."""
        norm = np.linalg.norm(p)
        if not norm:
            return 1.0
        apart = p / norm - self.target
        return float(apart @ apart / 2)


EXPERIMENTS = {
    "E1": Experiment(known.one_bag(0.9), tuple((0.0, y) for y in known.STARTS), 1e-9),
    "E3": Experiment(known.three_bags(), tuple((x, 0.0) for x in known.STARTS), 1e-12),
}

# A contender: experiment and start -> seconds, processor seconds, steps, final p -------------------------------------

Measured = tuple[float, float, int, np.ndarray]
Record = dict[str, Any]


def growing(t: int) -> float:
    """The published step, a fifth longer at every step, up to 30. Much longer steps jump across the direction."""
    return min(30.0, RATE * 1.2 ** min(t, 100))


def steps_for_good(distances: Sequence[float]) -> int:
    """The first step from which on all distances are below. A path may cross the direction before it settles there.

    >>> steps_for_good([1.0, 1e-9, 1e-3, 1e-7, 1e-8])
    3
    """
    return 1 + max(t for t, distance in enumerate(distances) if not distance < BELOW)


def ours(method: Method[Any, Any], experiment: Experiment, start: Sequence[float]) -> Measured:
    """A first run, not timed, finds the number of steps; the second makes just these."""
    seen: list[float] = []
    run(method, np.array(start), 100_000, lambda state: seen.append(experiment.away(state.p)))
    steps = steps_for_good(seen)
    taken, processor, outcome = timed(lambda: run(method, np.array(start), steps))
    return taken, processor, steps, outcome.state.p


def by_torch(experiment: Experiment, start: Sequence[float], lean: bool = False, double: bool = False) -> Measured:
    """Tokens (key, score), W = diag(1, 1, 0), v = (0, 0, 1), labels 1; the gradient is divided by |g| + floor.

    A lean loop has keys and scores ready and does the least that still is this method.
    """
    import torch

    problem, kind = experiment.problem, torch.float64 if double else torch.float32
    rows = np.column_stack([problem.keys.rows, problem.scores]).reshape(len(problem.keys), -1, 3)
    X, W = torch.tensor(rows, dtype=kind), torch.diag(torch.tensor([1, 1, 0], dtype=kind))
    v, Y = torch.tensor([0, 0, 1], dtype=kind), torch.ones(len(X), dtype=kind)
    keys, scores = X @ W.T, X @ v

    def margins(p: torch.Tensor) -> torch.Tensor:
        if lean:
            return (torch.softmax(keys @ p, dim=-1) * scores).sum(dim=-1)
        attention = torch.softmax((X @ W.T) @ (W @ p), dim=-1)
        return Y * ((attention[:, None, :] @ X)[:, 0] @ v)

    def loop(steps: int) -> torch.Tensor:
        p = torch.nn.Parameter(torch.tensor([*start, 0], dtype=kind))
        optimiser = torch.optim.SGD([p], lr=RATE)
        for _ in range(steps):
            optimiser.zero_grad()
            torch.log(1 + torch.exp(-margins(p))).mean().backward()
            p.grad /= p.grad.norm() + experiment.floor
            optimiser.step()
        return p.detach()

    loop(20)  # what the first steps of a process cost is not counted
    taken, processor, p = timed(lambda: loop(STEPS))
    return taken, processor, STEPS, p.double().numpy()[:2]  # the third entry never moves: W hides it


CONTENDERS: dict[str, Callable[[Experiment, Sequence[float]], Measured]] = {
    "flow": lambda given, start: ours(Flow(given.problem, FAR), given, start),
    "flow, long pieces": lambda given, start: ours(Flow(given.problem, FAR, growth=10.0), given, start),
    "normalised descent": lambda given, start: ours(Descent(given.problem, Normalised(growing), FAR), given, start),
    "torch": by_torch,
    "torch, lean": partial(by_torch, lean=True),
    "torch, float64": partial(by_torch, double=True),
}
OURS = ("flow", "flow, long pieces", "normalised descent")
PUBLISHED = "torch"
CLOCKS = {"By the clock": "seconds", "In processor time": "processor_s"}


def measure(contender: str) -> list[Record]:
    """All starts of all experiments."""
    records: list[Record] = []
    for name, experiment in EXPERIMENTS.items():
        for start in experiment.starts:
            taken, processor, steps, p = CONTENDERS[contender](experiment, start)
            case = {"experiment": name, "contender": contender, "start": sum(start)}
            times = {"seconds": taken, "processor_s": processor, "steps": steps}
            records.append(case | times | {"norm": float(np.linalg.norm(p)), "away": experiment.away(p)})
    return records


def all_records(contenders: Sequence[str], repeats: int) -> list[Record]:
    def job(name: str) -> Callable[[int], list[Record]]:
        return lambda _: in_fresh_process(["--one", name], "benchmarks.descents", threads=1)

    rounds = in_rounds({name: job(name) for name in contenders}, repeats)
    return [{"round": k} | record for each in rounds.values() for k, records in enumerate(each) for record in records]


# What the runs say ---------------------------------------------------------------------------------------------------


def chosen(records: Sequence[Record], experiment: str, contender: str) -> list[Record]:
    return [record for record in records if (record["experiment"], record["contender"]) == (experiment, contender)]


def of_rounds(records: Sequence[Record], clock: str) -> list[float]:
    """All starts together, one figure a round."""
    rounds = sorted({record["round"] for record in records})
    return [sum(record[clock] for record in records if record["round"] == number) for number in rounds]


def ratios(records: Sequence[Record], experiment: str, contender: str, reference: str, clock: str) -> list[float]:
    """How many times as long the reference takes, one figure a round."""
    both = [of_rounds(chosen(records, experiment, name), clock) for name in (reference, contender)]
    return [there / here for there, here in zip(*both, strict=True)]


def report(records: Sequence[Record], contenders: Sequence[str]) -> str:
    header = ["", "", "steps", "milliseconds", "norm of p", "1 - cos, worst start"]
    lines = []
    for experiment, name in product(EXPERIMENTS, contenders):
        runs = chosen(records, experiment, name)
        times = with_range((1000 * run["seconds"] for run in runs), ".1f")
        sizes = [_from_to([round(run[figure]) for run in runs]) for figure in ("steps", "norm")]
        lines.append([experiment, name, sizes[0], times, sizes[1], f"{max(run['away'] for run in runs):.1e}"])
    return table(header, lines)


def _from_to(numbers: Sequence[int]) -> str:
    least, largest = min(numbers), max(numbers)
    return str(least) if least == largest else f"{least} to {largest}"


def comparison(records: Sequence[Record], contenders: Sequence[str], clock: str) -> str:
    """How many times as long the loops take, and whether ours are there before the published one ends."""
    loops = [name for name in contenders if name not in OURS]
    lines = []
    for experiment, name in product(EXPERIMENTS, (name for name in contenders if name in OURS)):
        found = {loop: ratios(records, experiment, name, loop, clock) for loop in loops}
        exact = max(run["away"] for run in chosen(records, experiment, name)) < BELOW
        kept = exact and statistics.median(found[PUBLISHED]) > 1
        lines.append([experiment, name, *(with_range(each, ".1f") for each in found.values()), verdict(kept)])
    header = ["", "", *(f"`{loop}` / ours" for loop in loops), f"below {BELOW:.0e} before `{PUBLISHED}` ends"]
    return table(header, lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options_of(__doc__, REPEATS)
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--one", choices=CONTENDERS, help="measure one contender here")
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(measure(options.one)))
        return
    contenders = installed({name: "keytokens" if name in OURS else "torch" for name in options.contenders})
    records = all_records(contenders, options.repeats)
    write_csv(options.output / "descents.csv", records)
    libraries = ["keytokens", "numpy", "scipy", *(["torch"] if set(contenders) - set(OURS) else [])]
    about = f"{len(known.STARTS)} starts in each of {options.repeats} rounds, medians (least to largest)."
    parts = [f"{about} {surroundings(libraries)}.", report(records, contenders)]
    for title, clock in CLOCKS.items() if PUBLISHED in contenders else ():
        parts += [f"{title}, all starts together, one ratio a round:", comparison(records, contenders, clock)]
    text = "\n\n".join(parts) + "\n"
    publish(options.output / "descents.md", text)


if __name__ == "__main__":
    main()
