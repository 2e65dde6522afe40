"""A theorem as an object: what it says, what it supposes, and how far an instance is from breaking it.

A claim is run on instances: known ones, and random ones by seed. Its hypotheses are tested on the instance first; only
where all of them hold does the conclusion count. The conclusion is one number, the *excess*, which must not exceed the
tolerance. A counter-instance drops one hypothesis, and there the conclusion must really fail: so the hypothesis is
needed, and the check is able to fail. The excess also takes a factor `by`: it strengthens the constant of the
statement, and with a constant 10 % stronger than stated the conclusion must fail on some instance that counts.

`claim` makes one of the function that computes the excess; `verify` runs claims by their ids into a table of verdicts.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from importlib import import_module
from multiprocessing import get_context
from typing import Any, Generic, TypeVar

import numpy as np

from ...base.checks import check_number
from ...base.errors import refusal
from ...base.threads import one_blas_thread
from ...explain.html import FAIL, escaped, plain_page, table

I = TypeVar("I")  # noqa: E741  # an instance

ENOUGH = 20  # instances that meet the hypotheses of a claim
STRONGER = 1.1  # a constant so much stronger than stated must be noticed


@dataclass(frozen=True)
class Hypothesis(Generic[I]):
    """A supposition in words, and its test on an instance.

    None means that no test decides it: a hypothesis about all p is established by a sufficient condition, never by
    sampling. What is observed on such an instance does not count.

    >>> positive = Hypothesis("x is positive", lambda x: x > 0)
    >>> positive.holds(1.0), positive.holds(-1.0)
    (True, False)
    """

    says: str
    holds: Callable[[I], bool | None]


@dataclass(frozen=True)
class Counter(Generic[I]):
    """An instance where one hypothesis, named by its words, is dropped and the conclusion fails.

    >>> root = Counter("a negative number", without="x is positive", instance=lambda: -1.0)
    >>> root.instance()
    -1.0
    """

    says: str
    without: str
    instance: Callable[[], I]


@dataclass(frozen=True, kw_only=True)
class Claim(Generic[I]):
    """What a claim says, and how it is tried."""

    id: str
    says: str  # in our own words
    source: str  # the paper and the place, or "keytokens" for what is derived here
    excess: Callable[..., float]  # of an instance, and of a factor `by` that makes the constant stronger
    tolerance: float
    constant: str = ""  # what `by` multiplies, in words
    hypotheses: tuple[Hypothesis[I], ...] = ()
    draw: Callable[[np.random.Generator], I] | None = None  # a random instance
    seeds: int = 25  # random instances, if not told otherwise
    known: tuple[Callable[[], I], ...] = ()
    counters: tuple[Counter[I], ...] = ()
    notes: str = ""  # what a reader of the verdict should know: a constant that is ours, a number that differs

    def size(self, seeds: int | None = None) -> int:
        """How many instances there are: the known ones, and so many random ones."""
        return len(self.known) + (0 if self.draw is None else self.seeds if seeds is None else seeds)

    def instances(self, seeds: int | None = None, base: int = 0) -> Iterator[I]:
        """The known instances, then the random ones; instance k is the same whatever was drawn before it.

        Another `base` draws other random instances.
        """
        for make in self.known:
            yield make()
        if self.draw is not None:
            for seed in range(self.seeds if seeds is None else seeds):
                yield self.draw(np.random.default_rng([zlib.crc32(self.id.encode()), seed, base]))

    def breaks(self, instance: I, by: float = STRONGER) -> bool:
        """Whether the conclusion fails on an instance when its constant is so much stronger than stated."""
        return _number(self.excess(instance, by=by)) > self.tolerance

    @property
    def lacks(self) -> list[str]:
        """What a claim must have to be one, and this one has not."""
        missing = {
            "no counter-instance shows that it can fail": not self.counters,
            "no constant is named that could be stronger": not self.constant,
            f"it has fewer than {ENOUGH} instances": self.size() < ENOUGH,
        }
        return [what for what, lacking in missing.items() if lacking]


REGISTRY: list[Claim[Any]] = []
Excess = TypeVar("Excess", bound=Callable[[Any], float])


def claim(id: str, **stated: Any) -> Callable[[Excess], Excess]:
    """Register a claim by the function that computes its excess, which it decorates; `stated` are the other fields.

    The id is what is typed, `keytokens verify ID`: a family (`mm`, `te`, `fu` or `kt`), a full stop and a name.

    >>> says, whole = "Twice a whole number is even.", Hypothesis("the number is whole", lambda x: x == int(x))
    >>> half = Counter("one half", without=whole.says, instance=lambda: 0.5)
    >>> callable(claim("kt.even", says=says, source="school", tolerance=0, hypotheses=(whole,), counters=(half,)))
    True
    """
    if not stated.get("counters"):
        raise refusal("claim", "counters", "hold an instance on which the conclusion fails", id, "drop a hypothesis")

    def register(excess: Excess) -> Excess:
        REGISTRY.append(Claim(id=id, excess=excess, **stated))
        return excess

    return register


@dataclass(frozen=True)
class Verdict:
    """What became of a claim.

    >>> real = Hypothesis("x is real", lambda x: not isinstance(x, complex))
    >>> stated = {"source": "school", "tolerance": 0, "draw": np.random.Generator.normal, "hypotheses": (real,)}
    >>> judge(Claim(id="x.square", says="A square is not negative.", excess=lambda x: -x * x, **stated)).sentence[:49]
    'fails: no counter-instance shows that it can fail'
    """

    id: str
    says: str
    source: str
    instances: int
    hypotheses_met: int
    undecided: int  # instances where a hypothesis could not be decided: observed, not counted
    worst_excess: float  # over the instances that count; -inf without any
    tolerance: float
    seconds: float
    failures: tuple[str, ...] = field(default=())  # why it does not hold, a sentence each
    breaks_at: int = 0  # the instance, of those that count, on which a constant 10 % stronger first fails; 0 for none

    @property
    def holds(self) -> bool:
        return not self.failures

    @property
    def sentence(self) -> str:
        if self.failures:
            return "fails: " + "; ".join(self.failures)
        if not self.hypotheses_met:
            return "conclusion observed, hypothesis not decided"
        return "holds"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers for JSON, which has no infinities: an excess over no instance is None."""
        numbers = {**asdict(self), "holds": self.holds, "verdict": self.sentence, "seconds": round(self.seconds, 3)}
        worst = self.worst_excess if math.isfinite(self.worst_excess) else None
        return {**numbers, "worst_excess": worst}


def judge(
    claim: Claim[Any], seeds: int | None = None, base: int = 0, tick: Callable[[], None] = lambda: None
) -> Verdict:
    """Run a claim on its instances; `tick` is called after each of them."""
    begin = time.perf_counter()
    tried = met = undecided = breaks_at = 0
    worst = observed = -math.inf
    for instance in claim.instances(seeds, base):
        tried += 1
        standing = _standing(claim, instance)
        if standing is not False:
            excess = _number(claim.excess(instance))
            met, undecided = met + (standing is True), undecided + (standing is None)
            worst = max(worst, excess) if standing else worst
            observed = observed if standing else max(observed, excess)
        if standing and claim.constant and not breaks_at and claim.breaks(instance):
            breaks_at = met
        tick()
    failures = [
        *_too_few(claim, seeds, tried, met, undecided),
        *([f"the excess {worst:.3g} is above {claim.tolerance:.3g}"] if worst > claim.tolerance else []),
        *([f"observed an excess of {observed:.3g}"] if observed > claim.tolerance else []),
        *(["nothing notices a constant 10 % stronger"] if claim.constant and met >= ENOUGH and not breaks_at else []),
        *claim.lacks,
        *(complaint for counter in claim.counters if (complaint := _complaint(claim, counter))),
    ]
    seconds = time.perf_counter() - begin
    counts = (tried, met, undecided, worst, claim.tolerance, seconds, tuple(failures), breaks_at)
    return Verdict(claim.id, claim.says, claim.source, *counts)


def _standing(claim: Claim[I], instance: I) -> bool | None:
    """Whether all hypotheses hold; None if none fails and one is not decided."""
    answers = [hypothesis.holds(instance) for hypothesis in claim.hypotheses]
    if any(answer is not None and not answer for answer in answers):
        return False
    return None if None in answers else True


def _number(excess: float) -> float:
    """An excess that is no number is the worst there is."""
    return math.inf if math.isnan(excess) else float(excess)


def _too_few(claim: Claim[Any], seeds: int | None, tried: int, met: int, undecided: int) -> list[str]:
    """Enough instances must meet the hypotheses: 20, or as many as were asked for."""
    if undecided == tried and tried:
        return []
    needed = min(ENOUGH, claim.size(seeds))
    return [] if met >= needed else [f"the hypotheses hold on {met} of {tried} instances, fewer than {needed}"]


def _complaint(claim: Claim[I], counter: Counter[I]) -> str:
    """Why a counter-instance is none: it must break the named hypothesis, no other, and the conclusion."""
    instance = counter.instance()
    answers = {hypothesis.says: hypothesis.holds(instance) for hypothesis in claim.hypotheses}
    if counter.without not in answers:
        return f"{counter.says!r} drops a hypothesis that there is not: {counter.without!r}"
    if answers.pop(counter.without):
        return f"{counter.says!r} meets the hypothesis it should drop"
    others = [says for says, answer in answers.items() if answer is not None and not answer]
    if others:
        return f"{counter.says!r} also breaks {others[0]!r}"
    if not _number(claim.excess(instance)) > claim.tolerance:
        return f"without {counter.without!r} the conclusion still holds on {counter.says!r}"
    return ""


# the files with claims, in the order of the table
FAMILIES = (
    "max_margin.lemmas",
    "max_margin.descents",
    "max_margin.cones",
    "max_margin.paths",
    "max_margin.neighbours",
    "max_margin.joint",
    "matrices.margins",
    "matrices.training",
    "embeddings.one_step",
    "embeddings.flows",
    "embeddings.barriers",
    "embeddings.classes",
    "predictions",
    "matrices.mirrors",
)


def claims(ids: Sequence[str] = ()) -> list[Claim[Any]]:
    """The claims with these ids, or all of them; an id may be a prefix that ends in a full stop, as in "mm.".

    >>> [claim.id for claim in claims(["kt.flip", "kt.drop-bound"])]
    ['kt.flip', 'kt.drop-bound']
    """
    for family in FAMILIES:
        import_module(f".{family}", __package__)
    if not ids:
        return list(REGISTRY)
    chosen = [claim for claim in REGISTRY if any(_named(claim.id, wanted) for wanted in ids)]
    for wanted in ids:
        if not any(_named(claim.id, wanted) for claim in REGISTRY):
            known = ", ".join(claim.id for claim in REGISTRY)
            raise refusal("verify", "claim", "be the id of a claim", wanted, f"choose among {known}")
    return chosen


def _named(id: str, wanted: str) -> bool:
    return id == wanted or (wanted.endswith(".") and id.startswith(wanted))


class Verdicts(tuple[Verdict, ...]):
    """The verdicts of a run; shows as a table.

    >>> found = verify(["kt.flip", "kt.sufficient"], seeds=20)
    >>> found.holds, [verdict.id for verdict in found]
    (True, ['kt.sufficient', 'kt.flip'])
    """

    @property
    def holds(self) -> bool:
        return all(verdict.holds for verdict in self)

    def to_dict(self) -> dict[str, Any]:
        return {"claims": [verdict.to_dict() for verdict in self]}

    def __str__(self) -> str:
        header = f"{'claim':<22} {'tried':>6} {'met':>6} {'worst excess':>13} {'allowed':>9} {'seconds':>8}  verdict"
        return "\n".join([header, *map(_line, self), "", self.summary])

    __repr__ = __str__

    @property
    def summary(self) -> str:
        failed = [verdict.id for verdict in self if not verdict.holds]
        tried, met = sum(v.instances for v in self), sum(v.hypotheses_met for v in self)
        end = f"; failed: {', '.join(failed)}" if failed else ""
        return f"{len(self) - len(failed)} of {len(self)} claims hold; {met} of {tried} instances count{end}"


def _line(v: Verdict) -> str:
    worst = f"{v.worst_excess:.2e}" if v.hypotheses_met else "-"
    return (
        f"{v.id:<22} {v.instances:>6} {v.hypotheses_met:>6} {worst:>13} {v.tolerance:>9.1e} {v.seconds:>8.2f}"
        f"  {v.sentence}"
    )


def verify(
    ids: Sequence[str] = (),
    seeds: int | None = None,
    tick: Callable[[Verdict | None], None] = lambda verdict: None,
    seed: int = 0,
    jobs: int = 1,
) -> Verdicts:
    """Judge claims, all of them by default, on `seeds` random instances each (by default as many as each asks for).

    Another `seed` draws other instances. `tick` is called with None after each instance and with the verdict after each
    claim. Several `jobs` are processes, which share the claims.

    >>> verify("kt.flip", seeds=20).summary
    '1 of 1 claims hold; 20 of 20 instances count'
    """
    if isinstance(ids, str):
        ids = [ids]
    if seeds is not None and seeds < 1:
        raise refusal("verify", "seeds", "be at least 1", str(seeds))
    check_number("verify", "seed", seed, 0, whole=True)
    check_number("verify", "jobs", jobs, 1, whole=True)
    chosen, rows = claims(ids), []
    if jobs == 1 or len(chosen) == 1:
        for claim in chosen:
            rows.append(judge(claim, seeds, seed, lambda: tick(None)))
            tick(rows[-1])
        return Verdicts(rows)
    with ProcessPoolExecutor(min(jobs, len(chosen)), get_context("spawn")) as pool:
        for run in as_completed([pool.submit(_judged, claim.id, seeds, seed) for claim in chosen]):
            rows.append(run.result())
            for _ in range(rows[-1].instances):
                tick(None)
            tick(rows[-1])
    order = {claim.id: k for k, claim in enumerate(chosen)}
    return Verdicts(sorted(rows, key=lambda row: order[row.id]))


def _judged(id: str, seeds: int | None, seed: int) -> Verdict:
    """In a process of its own, which has the claims and one core."""
    with one_blas_thread():
        return judge(claims([id])[0], seeds, seed)


# The verdicts as a page -----------------------------------------------------------------------------------------------

TITLE = "keytokens: theorems that run"
INTRO = """\
Each claim was run on instances: its hypotheses are tested first, and only where they hold does the conclusion count. \
The excess is how far an instance is from breaking the conclusion; it must not be above what is allowed. Sources name \
a paper, or keytokens for what is derived here."""
HEAD = ("claim", "instances", "counted", "worst excess", "allowed", "10 % stronger fails at", "seconds", "verdict")


def verdicts_page(verdicts: Verdicts) -> str:
    """A page with a row for each claim."""
    parts = [
        f"<h1>{TITLE}</h1>",
        f'<p class="kt-intro">{INTRO}</p>',
        f'<p class="kt-proof">{escaped(verdicts.summary)}.</p>',
        f'<article><div class="kt-scroll">{table(HEAD, list(map(_row, verdicts)))}</div></article>',
    ]
    return plain_page(TITLE, "<main>\n" + "\n".join(parts) + "\n</main>")


def _row(v: Verdict) -> tuple[str, ...]:
    worst = f"{v.worst_excess:.2e}" if v.hypotheses_met else "–"
    counts, stronger = (str(v.instances), str(v.hypotheses_met)), f"no. {v.breaks_at}" if v.breaks_at else "–"
    numbers = (*counts, worst, f"{v.tolerance:.1e}", stronger, f"{v.seconds:.2f}")
    said = "holds" if v.sentence == "holds" else escaped(v.sentence)
    name = f'<b>{escaped(v.id)}</b> {escaped(v.says)} <span class="kt-soft">{escaped(v.source)}</span>'
    return name, *numbers, said if v.holds else f"{FAIL} {said}"
