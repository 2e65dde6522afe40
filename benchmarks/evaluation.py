"""One loss and its gradient beside the memory limit, on IMDB: `python -m benchmarks.evaluation`.

An evaluation makes m + 1 products with the counts and m + 1 with their transpose (m = 1 for two classes). No product
can be faster than reading its arrays once: the entries and the token of each. That is what the same number of sums over
these arrays, in the same number of threads, takes. `results/evaluation.csv` has a line for each round.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import numpy as np

from benchmarks.datasets import load
from benchmarks.explaining import mixed
from benchmarks.measure import options_of, seconds, use_processors, with_range, write_csv
from keytokens import KeyTokenClassifier
from keytokens.model.attention import Parameters, evaluate
from keytokens.model.losses import loss_for
from keytokens.training.fit import TrainingSet

DOCUMENTS, REPEATS = 25_000, 21
THREADS = (1, 2)
PIECES = 8  # of an array that threads read


@contextmanager
def overheard() -> Iterator[list[tuple[TrainingSet, Parameters]]]:
    """Whose loss is asked for meanwhile, and where."""
    original, calls = TrainingSet.sum, []

    def listening(data: TrainingSet, of: Callable, *given):
        if of is evaluate:
            calls.append((data, given[-1]))
        return original(data, of, *given)

    TrainingSet.sum = listening
    try:
        yield calls
    finally:
        TrainingSet.sum = original


def arrays(data: TrainingSet, products: int) -> list[np.ndarray]:
    """What so many products with the counts, and as many with their transpose, must read: the same arrays."""
    own = [array for block in data.blocks for array in (block.tokens.data, block.tokens.indices)]
    return own * 2 * products


def whole_words(array: np.ndarray) -> np.ndarray:
    """The same bytes as 64-bit integers: what numpy sums fastest. Up to seven bytes at the end are left out."""
    raw = np.ascontiguousarray(array).view(np.uint8)
    return raw[: len(raw) // 8 * 8].view(np.int64)


def read_all(pieces: Sequence[np.ndarray], threads: int) -> None:
    if threads == 1:
        for piece in pieces:
            piece.sum()
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(np.sum, pieces))


def measured(data: TrainingSet, theta: Parameters, repeats: int) -> list[dict[str, object]]:
    """Evaluating and reading take turns."""
    products = len(theta.B) + 1
    pieces = [part for array in arrays(data, products) for part in cut(whole_words(array))]
    megabytes = sum(piece.nbytes for piece in pieces) / 1e6
    records = []
    for number in range(repeats + 1):
        for threads in THREADS:
            own = replace(data, threads=threads)
            record = {"threads": threads, "round": number, "read_mb": megabytes}
            record["evaluate_s"] = seconds(lambda own=own: own.sum(evaluate, loss_for(own.n_classes), theta))
            record["read_s"] = seconds(lambda threads=threads: read_all(pieces, threads))
            if number:  # the first round warms up
                records.append(record)
    return records


def cut(array: np.ndarray) -> list[np.ndarray]:
    bounds = np.linspace(0, len(array), PIECES + 1).astype(int).tolist()
    return [array[first:last] for first, last in pairwise(bounds) if last > first]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options_of(__doc__, REPEATS)
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--quick", action="store_true", help="1,000 reviews, three rounds")
    options = parser.parse_args(arguments)
    if options.quick:
        options.documents, options.repeats = 1_000, 3
    use_processors()
    with overheard() as calls:
        KeyTokenClassifier(ngrams=(1, 2), max_iter=3).fit(*mixed(*load("imdb"), options.documents))
    records = measured(*calls[-1], options.repeats)
    write_csv(options.output / "evaluation.csv", records)
    for threads in THREADS:
        ratios = [record["evaluate_s"] / record["read_s"] for record in records if record["threads"] == threads]
        print(f"{threads} threads: an evaluation takes {with_range(ratios, '.2f')} times the reading")


if __name__ == "__main__":
    main()
