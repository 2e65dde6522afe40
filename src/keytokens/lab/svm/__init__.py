"""Max-margin problems of attention, their exact solutions, and proofs that there is none."""

from ...base.errors import NotSeparable
from .lq import solve_lq
from .matrix import attended_sets, matrix_problem, multi_token_svm, solve_matrix, tied_matrix_problem
from .nuclear import solve_nuclear
from .problem import MarginProblem
from .sets import label_svm, relaxed_problem, solve_set_valued
from .solution import NotSolved, Solution, Witness
from .solver import solve

__all__ = [
    "MarginProblem",
    "Solution",
    "NotSeparable",
    "NotSolved",
    "Witness",
    "attended_sets",
    "label_svm",
    "matrix_problem",
    "multi_token_svm",
    "relaxed_problem",
    "solve",
    "solve_lq",
    "solve_matrix",
    "solve_nuclear",
    "solve_set_valued",
    "tied_matrix_problem",
]
