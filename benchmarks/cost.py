"""What one contender costs on one set, in a process of its own: `python -m benchmarks.cost keytokens short 1000`.

`speed` and `scaling` start these processes and let the contenders take turns. The clock of a fit starts when libraries
and texts are in memory; the peak of the memory is counted from there too.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import synthetic
from benchmarks.datasets import load
from benchmarks.measure import (
    forget_peak,
    in_fresh_process,
    peak_since_megabytes,
    resident_megabytes,
    seconds,
    use_processors,
)
from benchmarks.peers import CONTENDERS

SETS = ("imdb", "short", "twenty", "length")
TYPICAL_WORDS = 174  # the median IMDB review
SINGLES = 200  # texts predicted one by one


class Job(NamedTuple):
    """One measurement; `words` is the length of a text in the set `length`, and means nothing elsewhere."""

    contender: str
    set: str
    documents: int
    words: int = 0

    @property
    def arguments(self) -> list[str]:
        return [self.contender, self.set, str(self.documents), "--words", str(self.words)]


def take_turns(jobs: Mapping[Job, int], extra: Sequence[str] = ()) -> list[dict[str, object]]:
    """Run each job as often as it says, the jobs in turn; one record a run, told on the screen as it comes in."""
    records = []
    for number in range(max(jobs.values())):
        for job, repeats in jobs.items():
            if number < repeats:
                figures = in_fresh_process([*job.arguments, *extra], "benchmarks.cost")
                records.append({**job._asdict(), "round": number, **figures})
                print(told(records[-1]), flush=True)
    return records


def told(record: Mapping[str, Hashable]) -> str:
    length = f" of {record['words']:,} words" if record["words"] else ""
    where = f"{record['set']}, {record['documents']:,} texts{length}"
    return f"{where}, round {record['round']}, {record['contender']}: fit {record['fit_s']:.2f} s"


def corpus(name: str, documents: int, words: int) -> synthetic.Corpus:
    """The first so many texts of a set."""
    if name == "short":
        return synthetic.short(documents)
    if name == "twenty":
        return synthetic.twenty(documents)
    if name == "length":
        return synthetic.of_length(documents, words)
    return load(name, documents)


def measure_fit(contender, texts: Sequence[str], labels: Sequence[int]) -> dict[str, float]:
    """Raw text to fitted model. `fit_mb` is the peak of the fit less what libraries and texts held before it."""
    forget_peak()
    loaded = resident_megabytes()
    spent = seconds(lambda: contender.fit(texts, labels))
    return {"loaded_mb": loaded, "fit_s": spent, "fit_mb": peak_since_megabytes() - loaded}


def measure_use(contender, texts: Sequence[str]) -> dict[str, float]:
    """Prediction of all texts at once, then of typical texts one by one."""
    forget_peak()
    loaded = resident_megabytes()
    figures = {"predict_s": seconds(lambda: contender.predict(texts)), "predict_mb": peak_since_megabytes() - loaded}
    typical = sorted(texts, key=lambda text: abs(len(text.split()) - TYPICAL_WORDS))[:SINGLES]
    one_by_one = [seconds(lambda text=text: contender.predict([text])) for text in typical]
    return figures | {"predict_one_ms": 1000 * statistics.median(one_by_one)}


def measure_sizes(contender) -> dict[str, float]:
    """Megabytes of each form in which the model can be written."""
    with tempfile.TemporaryDirectory() as folder:
        forms = contender.save(Path(folder))
        return {f"{form}_size_mb": _bytes(path) / 1e6 for form, path in forms.items()}


def _bytes(path: Path) -> int:
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return sum(file.stat().st_size for file in files)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("contender", choices=CONTENDERS)
    parser.add_argument("set", choices=SETS)
    parser.add_argument("documents", type=int, help="how many texts, from the first on")
    parser.add_argument("--words", type=int, default=100, help="words in each text of the set length")
    parser.add_argument("--sizes", action="store_true", help="write the model too, in all its forms")
    options = parser.parse_args(arguments)
    use_processors()
    texts, labels = corpus(options.set, options.documents, options.words)
    contender = CONTENDERS[options.contender]()
    figures = {"text_mb": sum(len(text.encode()) for text in texts) / 1e6}
    figures |= measure_fit(contender, texts, labels) | contender.parts
    figures |= measure_use(contender, texts) | contender.parts
    if options.sizes:
        figures |= measure_sizes(contender)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
