"""Optimisation: one loop, and the methods that run in it."""

from .lbfgs import LBFGS
from .loop import Outcome, Status, run

__all__ = ["LBFGS", "Outcome", "Status", "run"]
