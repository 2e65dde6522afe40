"""Time, memory and size beside the peers, on IMDB and on a set of twenty classes: `python -m benchmarks.speed`.

Every run is a process of its own, and the contenders take turns; `results/speed.csv` has a line for each.
"""

from collections.abc import Sequence

from benchmarks.cost import Job, take_turns
from benchmarks.measure import options_of, write_csv
from benchmarks.peers import FAST, TIMED, distinct, installed

DOCUMENTS = {"imdb": 25_000, "twenty": 11_000}
QUICK = {"imdb": 300, "twenty": 200}
REPEATS, SLOW_REPEATS = 5, 2


def jobs(documents: dict[str, int], contenders: Sequence[str], repeats: int, slow: int) -> dict[Job, int]:
    """Those that take seconds are repeated more often than those that take a minute."""
    return {
        Job(name, which, size): repeats if name in FAST else slow
        for which, size in documents.items()
        for name in contenders
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options_of(__doc__, REPEATS)
    parser.add_argument("--sets", nargs="+", choices=DOCUMENTS, default=list(DOCUMENTS))
    parser.add_argument("--contenders", nargs="+", choices=TIMED, default=TIMED)
    parser.add_argument("--slow-repeats", type=int, default=SLOW_REPEATS, help="of the contenders of scikit-learn")
    parser.add_argument("--quick", action="store_true", help="few texts, two rounds")
    options = parser.parse_args(arguments)
    repeats = (2, 1) if options.quick else (options.repeats, options.slow_repeats)
    sizes = {name: (QUICK if options.quick else DOCUMENTS)[name] for name in options.sets}
    todo = jobs(sizes, distinct(installed(options.contenders)), *repeats)
    write_csv(options.output / "speed.csv", take_turns(todo, ["--sizes"]))


if __name__ == "__main__":
    main()
