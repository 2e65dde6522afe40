"""Max-margin problems of attention, their exact solutions, and proofs that there is none."""

from ..errors import NotSeparable
from .problem import MarginProblem
from .solution import MarginSolution, NotSolved, Witness
from .solver import solve
from .variants import SetSolution, label_svm, relaxed_problem, solve_relaxed, solve_set_valued

__all__ = [
    "MarginProblem",
    "MarginSolution",
    "NotSeparable",
    "NotSolved",
    "SetSolution",
    "Witness",
    "label_svm",
    "relaxed_problem",
    "solve",
    "solve_relaxed",
    "solve_set_valued",
]
