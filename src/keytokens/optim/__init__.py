"""Optimisation: one loop, and the methods that run in it."""

from .descents import Descent, Growing, Normalised, Plain, Polyak, power
from .flow import Flow, flow
from .lbfgs import LBFGS
from .loop import Outcome, Status, run
from .mirrors import MirrorDescent
from .trajectory import Recorder, Trajectory, log_spaced

__all__ = [
    "LBFGS",
    "Descent",
    "Flow",
    "Growing",
    "MirrorDescent",
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
