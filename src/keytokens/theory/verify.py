"""Run the theorems: every claim by its id, and a table of verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ..errors import refusal
from .claim import Claim, Verdict, judge

__all__ = ["Verdicts", "claims", "verify"]

# one file a family; a file's CLAIMS are in the order of the paper
FAMILIES = (
    "margins",
    "descents",
    "influences",
    "balls",
    "neighbours",
    "converse",
    "optimal_sets",
    "joint",
    "matrix_margins",
    "matrix_training",
    "kept_tokens",
    "counts",
    "one_step",
    "step_space",
    "flows",
    "barriers",
    "sets",
    "mirrors",
)


def claims(ids: Sequence[str] = ()) -> list[Claim[Any]]:
    """The claims with these ids, or all of them; an id may be a prefix that ends in a full stop, as in "mm.".

    >>> [claim.id for claim in claims(["kt.flip", "kt.drop-bound"])]
    ['kt.flip', 'kt.drop-bound']
    """
    every = [claim for family in FAMILIES for claim in import_module(f".families.{family}", __package__).CLAIMS]
    if not ids:
        return every
    chosen = [claim for claim in every if any(_named(claim.id, wanted) for wanted in ids)]
    for wanted in ids:
        if not any(_named(claim.id, wanted) for claim in every):
            known = ", ".join(claim.id for claim in every)
            raise refusal("verify", "claim", "be the id of a claim", wanted, f"choose among {known}")
    return chosen


def _named(id: str, wanted: str) -> bool:
    return id == wanted or (wanted.endswith(".") and id.startswith(wanted))


@dataclass(frozen=True)
class Verdicts(Sequence[Verdict]):
    """The verdicts of a run; shows as a table.

    >>> found = verify(["kt.flip", "kt.contributions"])
    >>> found.holds, len(found), [verdict.id for verdict in found]
    (True, 2, ['kt.contributions', 'kt.flip'])
    """

    rows: tuple[Verdict, ...]

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.rows)

    @property
    def holds(self) -> bool:
        return all(verdict.holds for verdict in self.rows)

    def to_dict(self) -> dict[str, Any]:
        return {"claims": [verdict.to_dict() for verdict in self.rows]}

    def __str__(self) -> str:
        header = f"{'claim':<22} {'tried':>6} {'met':>6} {'worst excess':>13} {'allowed':>9} {'seconds':>8}  verdict"
        return "\n".join([header, *map(_line, self.rows), "", self.summary])

    __repr__ = __str__

    @property
    def summary(self) -> str:
        failed = [verdict.id for verdict in self.rows if not verdict.holds]
        tried, met = sum(v.instances for v in self.rows), sum(v.hypotheses_met for v in self.rows)
        end = f"; failed: {', '.join(failed)}" if failed else ""
        return f"{len(self.rows) - len(failed)} of {len(self.rows)} claims hold; {met} of {tried} instances count{end}"


def _line(v: Verdict) -> str:
    worst = f"{v.worst_excess:.2e}" if v.hypotheses_met else "-"
    return (
        f"{v.id:<22} {v.instances:>6} {v.hypotheses_met:>6} {worst:>13} {v.tolerance:>9.1e} {v.seconds:>8.2f}"
        f"  {v.sentence}"
    )


def verify(
    ids: Sequence[str] = (), seeds: int | None = None, tick: Callable[[Verdict | None], None] = lambda verdict: None
) -> Verdicts:
    """Judge claims, all of them by default, on `seeds` random instances each (by default as many as each asks for).

    `tick` is called with None after each instance and with the verdict after each claim.

    >>> verify("kt.flip", seeds=20).summary
    '1 of 1 claims hold; 20 of 20 instances count'
    """
    if isinstance(ids, str):
        ids = [ids]
    if seeds is not None and seeds < 1:
        raise refusal("verify", "seeds", "be at least 1", str(seeds))
    rows = []
    for claim in claims(ids):
        rows.append(judge(claim, seeds, lambda: tick(None)))
        tick(rows[-1])
    return Verdicts(tuple(rows))
