"""The laboratory: the theory of both papers, runnable. The product never imports it.

A name is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .claims import verify
    from .descent import Run
    from .embedding import EmbeddingAttention
    from .endings import run_many
    from .front import Problem
    from .problems.heads import Linear, Quadratic, Tanh
    from .problems.losses import Correlation, Exponential, Logistic
    from .svm import MarginProblem, NotSeparable, label_svm, solve

__all__ = [
    "Correlation",
    "EmbeddingAttention",
    "Exponential",
    "Linear",
    "Logistic",
    "MarginProblem",
    "NotSeparable",
    "Problem",
    "Quadratic",
    "Run",
    "Tanh",
    "label_svm",
    "run_many",
    "solve",
    "verify",
]

_HOME = {
    "Problem": "front",
    "Run": "descent",
    "EmbeddingAttention": "embedding",
    "run_many": "endings",
    "verify": "claims",
    **dict.fromkeys(("Linear", "Quadratic", "Tanh"), "problems.heads"),
    **dict.fromkeys(("Correlation", "Exponential", "Logistic"), "problems.losses"),
    **dict.fromkeys(("MarginProblem", "NotSeparable", "label_svm", "solve"), "svm"),
}


_ROOMS = ("claims", "descent", "figures", "paths", "problems", "selection", "svm")


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f".{name}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
