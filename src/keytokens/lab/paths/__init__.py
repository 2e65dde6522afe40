"""Regularisation paths: the best p within each ball, where they should end, and how much of that is proved."""

from .balls import PathPoint, Proof, joint_path, regularisation_path
from .sets import Decomposition, Falls, SetPoint, decomposition, falls, set_path

__all__ = [
    "Decomposition",
    "Falls",
    "PathPoint",
    "Proof",
    "SetPoint",
    "decomposition",
    "falls",
    "joint_path",
    "regularisation_path",
    "set_path",
]
