"""Formulas broken on purpose: every small change of one expression that a claim runs, put into the running package.

A mutant replaces the code of a live function, so that whoever holds the function runs the broken formula. The claims
must notice: `python -m tests.lab.claims.mutants` breaks whatever any claim rests on and lists what went unnoticed.
Nobody names modules here: each claim is run once under a tracer, and the lines that it runs are what it rests on.
Not broken are the functions that draw instances, where any number is as good as another, and the checks themselves.
"""

import argparse
import ast
import inspect
import os
import signal
import sys
import time
import types
from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import keytokens
from keytokens.base.threads import one_blas_thread
from keytokens.lab.claims.claim import ENOUGH, Claim, _complaint, _number, _standing, claims

from .equivalents import EQUIVALENT

SWAPS: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Div: ast.Mult}
ROOT = Path(keytokens.__file__).parent
TRACED = 3  # random instances of each claim that show what it runs
Lines = dict[str, set[int]]  # of a file


@dataclass(frozen=True)
class Mutant:
    module: str
    function: str  # its qualified name in the module
    what: str  # the change, with its line
    code: types.CodeType
    lines: range  # of the expression

    @property
    def is_equivalent(self) -> bool:
        return any(self.function == name and self.what.endswith(code and f": {code}") for name, code in EQUIVALENT)


# What a claim rests on ------------------------------------------------------------------------------------------------


def lines_run(claim: Claim[Any], seeds: int = TRACED) -> Lines:
    """The lines of the package that a claim runs, its own file included."""
    found: Lines = defaultdict(set)

    def local(frame: types.FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            found[frame.f_code.co_filename].add(frame.f_lineno)
        return local

    def calls(frame: types.FrameType, event: str, arg: Any) -> Any:
        return local if frame.f_code.co_filename.startswith(str(ROOT)) else None

    before = sys.gettrace()
    sys.settrace(calls)
    try:
        for instance in claim.instances(seeds):
            if _standing(claim, instance) is not False:
                claim.excess(instance)
    finally:
        sys.settrace(before)
    return dict(found)


def _run(id: str) -> tuple[str, float, Lines]:
    (claim,) = claims([id])
    begin = time.process_time()
    noticed_by(claim, TRACED)
    spent = (time.process_time() - begin) / TRACED
    return id, spent, lines_run(claim)


@dataclass(frozen=True)
class Rests:
    """What the claims rest on; the quickest come first."""

    seconds: dict[str, float]  # of an instance of a claim
    lines: dict[str, Lines]

    @classmethod
    def of(cls, ids: Sequence[str], pool: Any = None) -> "Rests":
        run = sorted((pool.map if pool else map)(_run, ids), key=lambda one: one[1])
        return cls({id: spent for id, spent, _ in run}, {id: lines for id, _, lines in run})

    @property
    def modules(self) -> list[str]:
        files = sorted({Path(file) for lines in self.lines.values() for file in lines})
        return [".".join(("keytokens", *file.relative_to(ROOT).with_suffix("").parts)) for file in files]

    def runners(self, file: str, lines: range) -> list[str]:
        return [id for id, run in self.lines.items() if not run.get(file, set()).isdisjoint(lines)]

    def mutants(self, module: str) -> Iterator[tuple[Mutant, list[str]]]:
        """All mutants of a module that some claim runs, and which claims do."""
        file = str(inspect.getsourcefile(import_module(module)))
        checks = {claim.excess.__name__ for claim in claims() if claim.excess.__module__ == module}
        for name in functions(module):
            if name not in checks:
                for mutant in mutants(module, [name]):
                    if who := self.runners(file, mutant.lines):
                        yield mutant, who


def imported(module: str) -> set[str]:
    """The modules of the package that one imports, directly or not, by its source."""
    found, left = set(), [module]
    while left:
        name = left.pop()
        if name not in found and name.startswith("keytokens"):
            found.add(name)
            left += _imports(name)
    return found


@cache
def _imports(name: str) -> list[str]:
    live = import_module(name)
    package, out = live.__package__ or "", []
    for node in ast.walk(ast.parse(inspect.getsource(live))):
        if isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) + 1 - node.level]) if node.level else ""
            full = ".".join(filter(None, (base, node.module)))
            inner = [f"{full}.{alias.name}" for alias in node.names]
            out += [one for one in (full, *inner) if isinstance(sys.modules.get(one), types.ModuleType)]
    return out


# Changes of one expression --------------------------------------------------------------------------------------------


def functions(module: str) -> list[str]:
    """The qualified names of its functions and methods, but for those that draw random instances."""
    tree = ast.parse(inspect.getsource(import_module(module)))
    holders: list[tuple[str, Any]] = [("", tree)]
    holders += [(f"{node.name}.", node) for node in tree.body if isinstance(node, ast.ClassDef)]
    return [
        prefix + node.name
        for prefix, holder in holders
        for node in holder.body
        if isinstance(node, ast.FunctionDef) and not any(_draws(arg) for arg in node.args.args)
    ]


def _draws(arg: ast.arg) -> bool:
    return arg.annotation is not None and "Generator" in ast.unparse(arg.annotation)


def changes(function: ast.FunctionDef) -> Iterator[tuple[str, range, ast.FunctionDef]]:
    """Copies of a function with one expression changed: a sign, a factor 2, a swapped index or order."""
    for k, node in enumerate(ast.walk(function)):
        for what, change in _changes_of(node):
            copy = deepcopy(function)
            target = next(other for j, other in enumerate(ast.walk(copy)) if j == k)
            change(target)
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            yield f"line {node.lineno}: {what}: {ast.unparse(node)}", lines, ast.fix_missing_locations(copy)


def _changes_of(node: Any) -> Iterator[tuple[str, Callable[[Any], None]]]:
    if isinstance(node, ast.BinOp) and type(node.op) in SWAPS and not _is_text(node):
        other = SWAPS[type(node.op)]
        yield f"{type(node.op).__name__} becomes {other.__name__}", lambda n: setattr(n, "op", other())
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield "a factor 2", lambda n: setattr(n, "left", ast.BinOp(n.left, ast.Mult(), ast.Constant(2)))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        yield "a sign", lambda n: setattr(n, "left", ast.UnaryOp(ast.USub(), n.left))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield "a sign goes", lambda n: setattr(n, "op", ast.UAdd())
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("max", "min"):
        other_name = {"max": "min", "min": "max"}[node.func.attr]
        yield f"{node.func.attr} becomes {other_name}", lambda n: setattr(n.func, "attr", other_name)


def _is_text(node: ast.BinOp) -> bool:
    return any(isinstance(side, ast.JoinedStr | ast.List | ast.Tuple) for side in (node.left, node.right))


def mutants(module: str, names: Sequence[str]) -> Iterator[Mutant]:
    """All mutants of the named functions (qualified names) of a module."""
    live = import_module(module)
    tree = ast.parse(inspect.getsource(live))
    for name in names:
        holder, place = _place(tree, name)
        original = holder.body[place]
        for what, lines, copy in changes(original):
            holder.body[place] = copy
            code = compile(tree, str(live.__file__), "exec", dont_inherit=True)
            yield Mutant(module, name, what, _code(code, name), lines)
        holder.body[place] = original


def _place(tree: ast.Module, name: str) -> tuple[Any, int]:
    holder: Any = tree
    *outer, last = name.split(".")
    for part in outer:
        holder = next(node for node in holder.body if isinstance(node, ast.ClassDef) and node.name == part)
    return holder, next(i for i, node in enumerate(holder.body) if getattr(node, "name", "") == last)


def _code(code: types.CodeType, name: str) -> types.CodeType:
    for part in name.split("."):
        code = next(one for one in code.co_consts if isinstance(one, types.CodeType) and one.co_name == part)
    return code


def _function(mutant: Mutant) -> Any:
    owner: Any = import_module(mutant.module)
    for part in mutant.function.split("."):
        owner = inspect.getattr_static(owner, part)
    if isinstance(owner, cached_property):
        owner = owner.func
    if isinstance(owner, property):
        owner = owner.fget
    if isinstance(owner, classmethod | staticmethod):
        owner = owner.__func__
    return inspect.unwrap(owner)


@contextmanager
def broken(mutant: Mutant) -> Iterator[None]:
    function = _function(mutant)
    whole = function.__code__
    function.__code__ = mutant.code
    try:
        yield
    finally:
        function.__code__ = whole


# Who notices ----------------------------------------------------------------------------------------------------------


def noticed_by(claim: Claim[Any], seeds: int | None) -> bool:
    """Whether the conclusion fails, or a counter-instance is none, or holds 10 % stronger; stops at the first."""
    counted, breaks = 0, not claim.constant
    for instance in claim.instances(seeds):
        standing = _standing(claim, instance)
        if standing is not False and _number(claim.excess(instance)) > claim.tolerance:
            return True
        counted += standing is not False
        breaks = breaks or (standing is True and claim.breaks(instance))
    few = min(ENOUGH, claim.size(seeds)) if seeds is None else 1
    return counted < few or not breaks or any(_complaint(claim, counter) for counter in claim.counters)


def noticed(mutant: Mutant, ids: Sequence[str], seeds: int | None, budget: float = 20.0) -> str:
    """The first claim that fails (or raises, or does not end) with the broken formula; "" if all of them hold.

    Claims are tried until the budget is spent, in seconds of the processor.
    """
    end = time.process_time() + budget
    with broken(mutant):
        for claim in (claim for id in ids for claim in claims([id])):
            left = end - time.process_time()
            if left <= 0:
                break
            try:
                with _limit(left):
                    if noticed_by(claim, seeds):
                        return claim.id
            except TimeoutError:
                return f"{claim.id} (does not end)" if left > budget / 2 else ""
            except Exception as error:
                return f"{claim.id} ({type(error).__name__})"
    return ""


@contextmanager
def _limit(seconds: float) -> Iterator[None]:
    """Of the processor's time: a busy machine is no broken formula."""

    def late(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


# All of them ----------------------------------------------------------------------------------------------------------


def sample(rests: Rests, module: str, most: int | None) -> list[tuple[Mutant, list[str]]]:
    """The mutants of a module that are not equivalent, or so many of them."""
    every = [(mutant, ids) for mutant, ids in rests.mutants(module) if not mutant.is_equivalent]
    chosen = np.random.default_rng(0).permutation(len(every))[:most]
    return [every[k] for k in sorted(chosen.tolist())]


_held: dict[str, Rests] = {}


def _hold(rests: Rests) -> None:
    """In a worker: BLAS has one thread, and warnings of broken formulas are nobody's concern."""
    _held["rests"] = rests
    one_blas_thread().__enter__()
    np.seterr(all="ignore")


def _count(module: str, most: int | None) -> int:
    return len(sample(_held["rests"], module, most))


def _try(module: str, k: int, most: int | None, seeds: int | None, budget: float) -> tuple[str, str, str, float]:
    mutant, ids = sample_once(module, most)[k]
    begin = time.perf_counter()
    who = noticed(mutant, ids, seeds, budget)
    return module, who, f"{mutant.function} {mutant.what}", time.perf_counter() - begin


@cache
def sample_once(module: str, most: int | None) -> list[tuple[Mutant, list[str]]]:
    return sample(_held["rests"], module, most)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--module", default="keytokens", help="this one, or all whose names begin like that")
    parser.add_argument("--claims", nargs="*", default=(), help="ids, or families as in te.; all by default")
    parser.add_argument("--most", type=int, help="mutants of each module; all by default")
    parser.add_argument("--seeds", type=int, help="instances of each claim; as many as it asks for by default")
    parser.add_argument("--budget", type=float, default=6.0, help="seconds for a mutant that nobody notices")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    context, ids = get_context("spawn"), [claim.id for claim in claims(options.claims)]
    os.environ["PYTHONWARNINGS"] = "ignore"
    with ProcessPoolExecutor(options.jobs, context) as pool:
        rests = Rests.of(ids, pool)
    modules = [name for name in rests.modules if name.startswith(options.module)]
    tally: dict[str, Tally[bool]] = defaultdict(Tally)
    with ProcessPoolExecutor(options.jobs, context, _hold, (rests,)) as pool:
        sizes = pool.map(_count, modules, [options.most] * len(modules))
        tasks = [(name, k) for name, size in zip(modules, sizes, strict=True) for k in range(size)]
        print(f"{len(tasks)} mutants in {len(modules)} modules that {len(ids)} claims run", flush=True)
        runs = [pool.submit(_try, name, k, options.most, options.seeds, options.budget) for name, k in tasks]
        for run in runs:
            name, who, what, spent = run.result()
            tally[name][bool(who)] += 1
            print(f"{who or 'UNNOTICED':<40} {spent:6.2f}s {name} {what}", flush=True)
    print(f"\n{'module':<52} killed survived")
    for name in modules:
        print(f"{name:<52} {tally[name][True]:>6} {tally[name][False]:>8}")
    idle = set().union(*(imported(claim.excess.__module__) for claim in claims(options.claims))) - set(rests.modules)
    print(f"imported, and no line of them is run by a claim: {', '.join(sorted(idle)) or 'none'}")
    killed, survived = (sum(count[kind] for count in tally.values()) for kind in (True, False))
    print(f"{killed} of {killed + survived} broken formulas were noticed; {len(EQUIVALENT)} kinds change nothing")
    sys.exit(survived > 0)


if __name__ == "__main__":
    main()
