"""Optimisation: one loop, and the methods that run in it."""

from .descents import Descent, Normalised, Plain, Polyak, power
from .flow import Flow, flow
from .lbfgs import LBFGS
from .loop import Ending, Outcome, Status, run
from .trajectory import Recorder, Trajectory, log_spaced

__all__ = [
    "LBFGS",
    "Descent",
    "Ending",
    "Flow",
    "Normalised",
    "Outcome",
    "Plain",
    "Polyak",
    "Recorder",
    "Status",
    "Trajectory",
    "flow",
    "log_spaced",
    "power",
    "run",
]
