"""Descents and flows: one loop, and the methods that run in it."""

from ...training.loop import Outcome, Status, run
from .flow import Flow, flow
from .steps import Descent, Growing, MirrorDescent, Normalised, Plain, Polyak, power
from .trajectory import Run, log_spaced

__all__ = [
    "Descent",
    "Flow",
    "Growing",
    "MirrorDescent",
    "Normalised",
    "Outcome",
    "Plain",
    "Polyak",
    "Run",
    "Status",
    "flow",
    "log_spaced",
    "power",
    "run",
]
