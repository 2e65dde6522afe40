"""Regularisation paths: the best p within each ball, where they should end, and how much of that is proved."""

from .decomposition import Decomposition, Falls, decomposition, falls
from .regularisation import PathPoint, Proof, joint_path, regularisation_path
from .sets import SetPath, SetPoint, set_path

__all__ = [
    "Decomposition",
    "Falls",
    "PathPoint",
    "Proof",
    "SetPath",
    "SetPoint",
    "decomposition",
    "falls",
    "joint_path",
    "regularisation_path",
    "set_path",
]
