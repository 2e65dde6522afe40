"""How the time of a fit grows when the number of reviews doubles: `python -m benchmarks.scaling`."""

import argparse
from collections.abc import Sequence
from itertools import pairwise

from benchmarks.measure import take_turns
from benchmarks.peers import CONTENDERS

SIZES = (3_125, 6_250, 12_500, 25_000)
BAR = 2.2  # a doubling of the texts may cost at most this factor
REPEATS = 3


def growth(times: Sequence[float]) -> list[float]:
    """Ratios of successive times."""
    return [after / before for before, after in pairwise(times)]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contender", choices=CONTENDERS, default="keytokens")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    options = parser.parse_args(arguments)
    medians = take_turns({size: [options.contender, str(size)] for size in SIZES}, options.repeats)
    times = [medians[size]["fit_s"] for size in SIZES]
    print(f"{'reviews':>8}{'fit, s':>10}{'ratio':>8}")
    for size, time, ratio in zip(SIZES, times, [None, *growth(times)], strict=True):
        print(f"{size:8}{time:10.3f}" + (f"{ratio:8.2f}" if ratio else ""))
    worst = max(growth(times))
    print(f"worst ratio {worst:.2f}, bar {BAR}: {'kept' if worst <= BAR else 'MISSED'}")


if __name__ == "__main__":
    main()
