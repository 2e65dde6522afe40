"""Max-margin problems of attention, their exact solutions, and proofs that there is none."""

from ..errors import NotSeparable
from .lq import LqSolution, solve_lq
from .matrix import MatrixSolution, Rank, matrix_problem, solve_matrix, tied_matrix_problem
from .multi_token import MultiToken, attended_sets, multi_token_svm
from .nuclear import NuclearSolution, solve_nuclear
from .problem import MarginProblem
from .solution import MarginSolution, NotSolved, Witness
from .solver import solve
from .variants import SetSolution, label_svm, relaxed_problem, solve_relaxed, solve_set_valued

__all__ = [
    "LqSolution",
    "MarginProblem",
    "MarginSolution",
    "MatrixSolution",
    "MultiToken",
    "NotSeparable",
    "NotSolved",
    "NuclearSolution",
    "Rank",
    "SetSolution",
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
    "solve_relaxed",
    "solve_set_valued",
    "tied_matrix_problem",
]
