"""Killed at any moment: `python -m tests.crash [PHASE ...] --kills N --seed S`.

phases    what is done while the kill comes, and what must hold afterwards; one entry each
run       forks a process that has everything imported, kills it, and looks at what is left
"""
