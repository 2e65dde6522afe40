"""`python -m tests.crash [PHASE ...] --kills N --seed S`: exit code 1 if a promise is broken."""

import argparse
import sys
import tempfile
from pathlib import Path

from .phases import PHASES, Known
from .run import Tally, crash, shares


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description="Kill it at any moment.")
    parser.add_argument("phases", nargs="*", metavar="PHASE", help=", ".join(PHASES))
    parser.add_argument("--kills", type=int, default=50, help="in all, shared among the phases")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    unknown = set(given.phases) - set(PHASES)
    if unknown:
        parser.error(f"unknown phases: {', '.join(sorted(unknown))}")
    tallies: list[Tally] = []
    with tempfile.TemporaryDirectory(prefix="known-") as scratch:
        known = Known.make(Path(scratch).resolve())
        for name, kills in shares(given.phases or list(PHASES), given.kills).items():
            tallies.append(crash(name, kills, given.seed, known))
            print(tallies[-1], flush=True)
            for line in tallies[-1].broken[:10]:
                print(f"    {line}", flush=True)
    broken = sum(len(tally.broken) for tally in tallies)
    print(f"{sum(tally.kills for tally in tallies)} kills, seed {given.seed}, broken promises: {broken}")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
