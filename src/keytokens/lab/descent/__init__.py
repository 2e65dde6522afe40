"""Descents and flows: one loop, and the methods that run in it."""

from ...training.loop import Outcome, Status, run
from .flow import Flow, flow
from .steps import Descent, Growing, MirrorDescent, Normalised, Plain, Polyak, power
from .trajectory import Recorder, Trajectory, log_spaced

__all__ = [
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
