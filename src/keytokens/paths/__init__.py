"""Regularisation paths: the best parameters within balls that grow."""

from .regularisation import PathPoint, Proof, joint_path, regularisation_path

__all__ = ["PathPoint", "Proof", "joint_path", "regularisation_path"]
