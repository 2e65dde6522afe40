"""Time and memory beside the peers, on IMDB: `python -m benchmarks.speed`."""

import argparse
from collections.abc import Mapping, Sequence

from benchmarks.measure import take_turns
from benchmarks.peers import CONTENDERS, installed

DOCUMENTS = 25_000
REPEATS = 3
REFERENCE = "fasttext"
FIGURES = ["fit_s", "predict_s", "loaded_mb", "peak_mb", "predict_one_ms", "explain_one_ms"]


def ratios(medians: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Each figure divided by that of fastText, where fastText has it."""
    reference = medians[REFERENCE]
    return {
        name: {figure: value / reference[figure] for figure, value in figures.items() if figure in reference}
        for name, figures in medians.items()
    }


def table(title: str, rows: Mapping[str, Mapping[str, float]]) -> str:
    lines = [title, f"{'contender':10}" + "".join(f"{figure:>16}" for figure in FIGURES)]
    for name, figures in rows.items():
        cells = [f"{figures[figure]:16.3f}" if figure in figures else " " * 16 for figure in FIGURES]
        lines.append(f"{name:10}" + "".join(cells))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    options = parser.parse_args(arguments)
    jobs = {name: [name, str(options.documents), "--use"] for name in installed(options.contenders)}
    medians = take_turns(jobs, options.repeats)
    print(table(f"medians of {options.repeats}, {options.documents} reviews", medians))
    if REFERENCE in medians:
        print("\n" + table(f"ratios to {REFERENCE}", ratios(medians)))


if __name__ == "__main__":
    main()
