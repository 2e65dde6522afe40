"""How cost grows with the number of texts and with their length, on texts made by lot: `python -m benchmarks.scaling`.

The contenders of scikit-learn stop at 100,000 texts, and at 1,000 texts of 1,000 words. `results/scaling.csv` has a
line for each run.
"""

from collections.abc import Mapping, Sequence

from benchmarks.cost import Job, take_turns
from benchmarks.measure import options_of, write_csv
from benchmarks.peers import FAST, TIMED, distinct, installed

DOCUMENTS = (1_000, 10_000, 100_000, 1_000_000)
LENGTHS = (10, 100, 1_000, 10_000)
TEXTS = 1_000  # of each length
SLOW_DOCUMENTS, SLOW_LENGTH = 100_000, 1_000
REPEATS, SLOW_REPEATS = 3, 2


def jobs(
    contenders: Sequence[str], documents: Sequence[int], lengths: Sequence[int], repeats: int, slow: int
) -> Mapping[Job, int]:
    """Every size for those that are fast enough, the smaller ones for the others."""
    cases = [("short", size, 0) for size in documents] + [("length", TEXTS, words) for words in lengths]
    return {
        Job(name, *case): repeats if name in FAST else slow
        for case in cases
        for name in contenders
        if name in FAST or (case[1] <= SLOW_DOCUMENTS and case[2] <= SLOW_LENGTH)
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options_of(__doc__, REPEATS)
    parser.add_argument("--contenders", nargs="+", choices=TIMED, default=TIMED)
    parser.add_argument("--documents", nargs="+", type=int, default=DOCUMENTS)
    parser.add_argument("--lengths", nargs="+", type=int, default=LENGTHS)
    parser.add_argument("--slow-repeats", type=int, default=SLOW_REPEATS, help="of the contenders of scikit-learn")
    parser.add_argument("--quick", action="store_true", help="two sizes, two lengths, one round")
    options = parser.parse_args(arguments)
    if options.quick:
        options.documents, options.lengths, options.repeats, options.slow_repeats = (200, 1_000), (10, 50), 1, 1
    contenders = distinct(installed(options.contenders))
    todo = jobs(contenders, options.documents, options.lengths, options.repeats, options.slow_repeats)
    write_csv(options.output / "scaling.csv", take_turns(todo))


if __name__ == "__main__":
    main()
