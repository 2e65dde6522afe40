"""`python -m tests.fuzz [READER ...] --inputs N --seed S --seconds LIMIT`: exit code 1 if anything was found."""

import argparse
import sys

from .run import READERS, Summary, fuzz

# a share of all inputs: cheap readers get more
SHARES = {
    "model-bytes": 10, "model-record": 7, "model-forged": 8, "csv": 18, "tsv": 6, "jsonl": 18, "csv.gz": 6,
    "csv.bz2": 4, "jsonl.xz": 4, "parquet": 12, "parquet.gz": 2, "texts": 0.3, "web": 3, "wire": 1.5, "store": 0.5,
    "command": 0.1, "working": 0.6,
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Hostile input for all that is read.")
    parser.add_argument("readers", nargs="*", metavar="READER", help=", ".join(READERS))
    parser.add_argument("--inputs", type=int, default=20_000, help="in all, shared among the readers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9, help="for each reader at most")
    parser.add_argument("--begin", type=int, default=0, help="index of the first input of each reader")
    given = parser.parse_args()
    unknown = set(given.readers) - set(READERS)
    if unknown:
        parser.error(f"unknown readers: {', '.join(sorted(unknown))}")
    chosen = given.readers or list(READERS)
    whole = sum(SHARES[name] for name in chosen)
    done: list[Summary] = []
    for name in chosen:
        share = round(given.inputs * SHARES[name] / whole)
        done.append(fuzz(name, share, given.seed, given.seconds, given.begin))
        print(done[-1], flush=True)
        for finding in done[-1].findings[:20]:
            print(f"    input {finding['index']}: {finding['end']}: {finding['said']}", flush=True)
    print(f"{sum(s.inputs for s in done):,} inputs, seed {given.seed}, findings: {sum(len(s.findings) for s in done)}")
    return int(any(s.findings for s in done))


if __name__ == "__main__":
    sys.exit(main())
