"""Formulas broken on purpose: every small change of one expression in a function, put into the running package.

A mutant replaces the code of a live function, so that whoever holds the function runs the broken formula. The claims
must notice: `python -m tests.lab.claims.mutants` breaks everything it can and lists what went unnoticed.
"""

import argparse
import ast
import inspect
import signal
import sys
import time
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

from keytokens.lab.claims import claims
from keytokens.lab.claims.claim import judge

SWAPS: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Div: ast.Mult}


@dataclass(frozen=True)
class Mutant:
    module: str
    function: str  # its qualified name in the module
    what: str  # the change, with its line
    code: types.CodeType


def changes(function: ast.FunctionDef) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Copies of a function with one expression changed: a sign, a factor 2, a swapped index or order."""
    for k, node in enumerate(ast.walk(function)):
        for what, change in _changes_of(node):
            copy = deepcopy(function)
            target = next(other for j, other in enumerate(ast.walk(copy)) if j == k)
            change(target)
            yield f"line {getattr(node, 'lineno', '?')}: {what}: {ast.unparse(node)}", ast.fix_missing_locations(copy)


def _changes_of(node: ast.AST) -> Iterator[tuple[str, Callable[[Any], None]]]:
    if isinstance(node, ast.BinOp) and type(node.op) in SWAPS:
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


def mutants(module: str, functions: Sequence[str]) -> Iterator[Mutant]:
    """All mutants of the named functions (qualified names) of a module."""
    live = import_module(module)
    source = inspect.getsource(live)
    tree = ast.parse(source)
    for name in functions:
        holder, place = _place(tree, name)
        original = holder.body[place]
        assert isinstance(original, ast.FunctionDef)
        for what, copy in changes(original):
            holder.body[place] = copy
            code = compile(tree, str(live.__file__), "exec", dont_inherit=True)
            yield Mutant(module, name, what, _code(code, name))
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


def _function(mutant: Mutant) -> types.FunctionType:
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


def noticed(mutant: Mutant, ids: Sequence[str], seeds: int, seconds: int = 20) -> str:
    """The first claim that fails (or raises, or does not end) with the broken formula; "" if all of them hold."""
    with broken(mutant):
        for claim in (claim for id in ids for claim in claims([id])):
            try:
                with _limit(seconds):
                    if not judge(claim, seeds).holds:
                        return claim.id
            except Exception as error:
                return f"{claim.id} ({type(error).__name__})"
    return ""


@contextmanager
def _limit(seconds: int) -> Iterator[None]:
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


# The formulas, and the claims that rest on them, quickest first.
FORMULAS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "keytokens.model.attention": (("scores", "evaluate"), ("kt.two-scalars", "kt.contributions")),
    "keytokens.model.embeddings": (("embed",), ("kt.two-scalars",)),
    "keytokens.lab.problems.embeddings": (("pull_back",), ("kt.two-scalars",)),
    "keytokens.proof.votes": (("Votes._pair",), ("kt.sufficient", "kt.flip", "kt.flip-words")),
    "keytokens.proof.ranges": (("drop",), ("kt.drop-bound",)),
    "keytokens.lab.problems.losses": (
        ("Logistic.value", "Logistic.slope", "Exponential.slope"),
        ("mm.lemma4", "mm.lemma1", "mm.lemma6", "mm.loss-drift", "mm.rates"),
    ),
    "keytokens.lab.problems.reading": (
        ("Reading._shortfall", "Reading.margins", "Reading.pull"),
        ("mm.lemma4", "mm.lemma1", "mm.lemma6", "mm.loss-drift", "mm.rates"),
    ),
    "keytokens.lab.problems.geometry": (
        ("conjugate", "mirror", "norm", "dual", "bregman", "_divergence_of_one"),
        ("fu.lq-svm", "fu.mirror-step", "fu.mirror-direction"),
    ),
    "keytokens.lab.problems.logits": (("cross_logits", "pulled_matrix"), ("fu.mirror-step",)),
    "keytokens.lab.descent.steps": (("MirrorDescent.step",), ("fu.mirror-step", "fu.mirror-joint")),
    "keytokens.lab.svm.problem": (
        (
            *("Differences.times", "Differences.transposed_times", "Differences.rows"),
            *("Kronecker.times", "Kronecker.transposed_times", "Kronecker.gram", "contests"),
        ),
        ("te.closed-form", "te.max-margin", "fu.feasible", "fu.frobenius-rank", "fu.finite-part", "fu.nuclear"),
    ),
    "keytokens.lab.svm.matrix": (
        ("MultiToken.length", "MultiToken.prediction", "_shortest"),
        ("fu.feasible", "fu.frobenius-rank", "fu.finite-part", "fu.nuclear"),
    ),
    "keytokens.lab.svm.solution": (("Solution.bound", "Solution.gap"), ("fu.nuclear",)),
    "keytokens.lab.svm.sets": (("label_svm", "relaxed_problem"), ("mm.example-c", "mm.thm6")),
    "keytokens.lab.selection": (
        ("cone", "smoothness", "tight_smoothness", "separating_witness"),
        ("mm.lemma2", "mm.lemma7", "mm.lemma6", "mm.lemma4"),
    ),
    "keytokens.lab.claims.embeddings.stages": (
        ("embedding_gradient", "_forces", "token_pulls", "indicator_direction"),
        ("te.gradient", "te.p-gradient", "te.dimension", "te.divergence"),
    ),
    "keytokens.lab.claims.embeddings.data": (
        ("Documents.signed_frequency", "Documents.posterior_difference", "closed_form", "barrier", "sufficient_step"),
        (
            "te.signed-frequency",
            "te.one-step",
            "te.closed-form",
            "te.unbalanced-form",
            "te.sufficient-step",
            "te.barrier",
        ),
    ),
}
# Changes that change nothing that is claimed, and why.
HARMLESS = {
    ("Reading.pull", "-np.inf"): "a bag whose tokens all have one score; there the sign multiplies zero",
    ("Reading.pull", "spread(top) + log_abs(tied)"): "a tie of many tokens, counted in logarithms",
    ("evaluate", "-1"): "the claims are about one row of values, whose two columns are the first and the last",
    ("separating_witness", "1e-12 * float(np.abs(direction).max())"): "a tolerance",
    ("separating_witness", "np.abs(direction).max()"): "a tolerance",
    ("contests", "other - bags.starts[bags.bag[other]]"): "the names of the rows, which no claim reads",
    ("MultiToken.length", "given - self.finite"): "the finite part is orthogonal to the direction, as is claimed",
    ("_shortest", "np.abs(ties.times(p) - wanted).max(initial=0.0)"): "refuses what no claim asks for",
    ("_shortest", "1e-08 * (1 + float(np.abs(wanted).max(initial=0.0)))"): "a tolerance",
    ("_shortest", "np.abs(wanted).max(initial=0.0)"): "a tolerance",
    ("indicator_direction", "np.abs(rows @ q - target).max()"): "a residual that is reported, zero either way",
    ("indicator_direction", "np.asarray(u) / np.linalg.norm(u)"): "any multiple spans the same line",
    ("sufficient_step", "data.lengths.max()"): "all documents of the planted model have one length",
}


def is_harmless(mutant: Mutant) -> bool:
    return any(mutant.function == name and mutant.what.endswith(f": {code}") for name, code in HARMLESS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--module", help="only this one")
    parser.add_argument("--seeds", type=int, default=25)
    options = parser.parse_args()
    made = survived = 0
    for module, (functions, ids) in FORMULAS.items():
        if options.module in (None, module):
            for mutant in mutants(module, functions):
                if is_harmless(mutant):
                    continue
                begin = time.perf_counter()
                who = noticed(mutant, ids, options.seeds)
                made, survived = made + 1, survived + (not who)
                spent = time.perf_counter() - begin
                print(f"{who or 'UNNOTICED':<40} {spent:6.2f}s {module}.{mutant.function} {mutant.what}", flush=True)
    print(f"{made - survived} of {made} broken formulas were noticed")
    sys.exit(survived > 0)


if __name__ == "__main__":
    main()
