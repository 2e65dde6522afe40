"""A fit on a cluster: one worker process against two, and what that means for a billion documents.

    python -m benchmarks.cluster                          a million short texts, `results/cluster.csv`
    python -m benchmarks.cluster --documents 100000       fewer
    python -m benchmarks.cluster --words 60               longer ones, `results/cluster_60_words.csv`

The texts lie in files, each worker reads its own. The seconds are those of the whole fit: reading, vocabulary, counts,
training; one thread a worker. The plan for many workers is arithmetic on constants that are measured here.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from dask.delayed import Delayed
from distributed import Client, LocalCluster

import dask
from benchmarks.measure import options_of, seconds, table, verdict, with_range, write_csv
from benchmarks.synthetic import Corpus, of_length, short
from keytokens.dask.estimator import DaskKeyTokenClassifier
from keytokens.model.attention import Parameters, evaluate
from keytokens.model.blocks import BLOCK, blocks_of
from keytokens.model.losses import loss_for

DOCUMENTS, PARTS = 1_000_000, 16
BAR = 1.6  # two workers against one
NETWORK = 1.25e9  # bytes a second, of a line of ten gigabits
TASK = 1e-3  # seconds of the scheduler for one task
BYTES_OF_ENTRY = 8  # a column and a count


def written(folder: Path, corpus: Corpus) -> tuple[list[Path], list[int]]:
    texts, labels = corpus
    paths = []
    for number, part in enumerate(np.array_split(np.arange(len(texts)), PARTS)):
        paths.append(folder / f"{number}.txt")
        paths[-1].write_text("\n".join(texts[part[0] : part[-1] + 1]), "utf-8")
    return paths, labels


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8").split("\n")


def fitted(paths: Sequence[Path], labels: list[int], workers: int) -> dict[str, Any]:
    """One fit with so many worker processes."""
    where: dict[str, Any] = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "memory_limit": 0}
    with LocalCluster(n_workers=workers, threads_per_worker=1, **where) as cluster, Client(cluster) as client:
        client.run(lambda: __import__("keytokens.dask.estimator"))
        parts: list[Delayed] = [dask.delayed(lines)(path) for path in paths]
        model = DaskKeyTokenClassifier(client)
        before, begin = client.run(time.process_time), time.process_time()
        took = seconds(lambda: model.fit(parts, labels))
        own = time.process_time() - begin
        busy = sorted(after - before[worker] for worker, after in client.run(time.process_time).items())
    return {
        "workers": workers,
        "seconds": took,
        "processor_s_of_workers": " ".join(f"{each:.1f}" for each in busy),
        "processor_s_of_client": own,  # the scheduler is a part of it
        "steps": model.n_iter_,
        "tokens": len(model.attention_),
        "known": int(model.class_counts_.sum()),
    }


# A plan for many workers ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Constants:
    """What one core of this machine does in a second."""

    entries: float  # of an evaluation
    additions: float  # bytes of sums that are added
    steps: float  # numbers of the optimiser's own work, per parameter and step


@dataclass(frozen=True)
class Plan:
    """One step of training, two classes, one core a worker."""

    documents: float
    workers: int
    entries_of_document: float
    tokens: float

    @property
    def bytes_of_sums(self) -> float:
        return 4 * 2 * self.tokens  # two rows of float32, up; as much goes down

    @property
    def blocks(self) -> float:
        return max(1.0, self.documents * self.entries_of_document / BLOCK)

    def bytes_moved(self) -> float:
        """By all together: parameters to every worker, one sum from each."""
        return 2 * self.workers * self.bytes_of_sums

    def parts(self, known: Constants) -> dict[str, float]:
        """Seconds of one step. Parameters spread, and sums are added, in a tree: so many rounds as it is deep."""
        rounds = np.ceil(np.log2(max(self.workers, 1))) + 1
        nodes = self.workers * max(1.0, np.log2(max(1.0, self.blocks / self.workers)))
        return {
            "evaluation": self.documents * self.entries_of_document / self.workers / known.entries,
            "network": 2 * rounds * self.bytes_of_sums / NETWORK,
            "additions": rounds * self.bytes_of_sums / known.additions,
            "scheduler": 2 * nodes * TASK,
            "optimiser": 2 * self.tokens / known.steps,
        }

    def memory(self) -> float:
        """Bytes of the counts on each worker."""
        return self.documents * self.entries_of_document * BYTES_OF_ENTRY / self.workers


def measured_constants(documents: int = 50_000) -> Constants:
    """On one core, with a vocabulary that does not fit in the cache."""
    from scipy import sparse

    rng = np.random.default_rng(0)
    tokens, length = 1_000_000, 36
    columns = (tokens * rng.random(documents * length) ** 6).astype(np.int32)
    pointer = np.arange(0, documents * length + 1, length, dtype=np.int32)
    counts = sparse.csr_matrix((np.ones(len(columns), np.float32), columns, pointer), shape=(documents, tokens))
    (block,) = blocks_of(counts, 2)
    y, weight = np.arange(documents) % 2, np.ones(documents, np.float32)
    zeros = np.zeros(1, np.float32)
    theta = Parameters(np.zeros(tokens, np.float32), np.ones((1, tokens), np.float32), zeros, zeros, 0.0)
    evaluation = best_of(lambda: evaluate(block, y, weight, loss_for(2), theta))
    vector = np.ones(2 * tokens, np.float32)
    addition = best_of(lambda: np.add(vector, vector))
    # a step of L-BFGS with two pairs passes about thirty times over a vector
    step = 30 * best_of(lambda: np.add(vector, vector, out=vector))
    return Constants(documents * length / evaluation, vector.nbytes / addition, 2 * tokens / step)


def best_of(action: Callable[[], object], repeats: int = 5) -> float:
    return min(seconds(action) for _ in range(repeats))


def plan_table(known: Constants, entries_of_document: float, tokens: float, documents: float = 1e9) -> str:
    """Seconds of a step, and what they are spent on, by the number of workers."""
    rows = []
    for workers in (1, 10, 100, 1_000, 10_000):
        plan = Plan(documents, workers, entries_of_document, tokens)
        parts = plan.parts(known)
        total = sum(parts.values())
        alone = sum(Plan(documents, 1, entries_of_document, tokens).parts(known).values())
        figures = [total, *parts.values(), plan.bytes_moved() / 1e9, plan.memory() / 1e9]
        rows.append([f"{workers:,}", *(f"{value:,.3g}" for value in figures), f"{alone / total / workers:.0%}"])
    header = ["workers", "seconds a step", "evaluation", "network", "additions", "scheduler", "optimiser"]
    return table([*header, "GB moved", "GB of counts a worker", "of ideal"], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options_of(__doc__)
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--words", type=int, help="in every text; without it they are short, of 16 to 32 words")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--plan-only", action="store_true", help="no fit, only the arithmetic for many workers")
    options = parser.parse_args(arguments)
    if not options.plan_only:
        with tempfile.TemporaryDirectory() as folder:
            begin = time.perf_counter()
            corpus = of_length(options.documents, options.words) if options.words else short(options.documents)
            paths, labels = written(Path(folder), corpus)
            del corpus
            print(f"{options.documents:,} texts written in {time.perf_counter() - begin:.0f} s", flush=True)
            records = []
            for _ in range(options.rounds):
                for workers in (1, 2):
                    records.append(fitted(paths, labels, workers))
                    print(records[-1], flush=True)
        one, two = ([r["seconds"] for r in records if r["workers"] == workers] for workers in (1, 2))
        ratios = [alone / both for alone, both in zip(one, two, strict=True)]
        kept = verdict(median(ratios) >= BAR)
        print(f"two workers: {with_range(ratios, '.2f')} times as fast as one; bar {BAR}: {kept}")
        write_csv(options.output / (f"cluster_{options.words}_words.csv" if options.words else "cluster.csv"), records)
    known = measured_constants()
    print(f"{known.entries:.3g} entries/s, {known.additions:.3g} bytes added/s, {known.steps:.3g} parameters stepped/s")
    print(plan_table(known, entries_of_document=36, tokens=20e6))


if __name__ == "__main__":
    main()
