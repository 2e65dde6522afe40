"""Hostile input for everything that is read: `python -m tests.fuzz [READER ...] --inputs N --seed S --seconds LIMIT`.

mutate    bytes and JSON, damaged by lot
watch     one input: how it ended, within what time and memory, and what it touched
models, tables, web, working    the readers
run       many inputs in a process of their own, which may die; the summary

Input `index` of a reader depends on the seed, the reader and the index alone, so that each can be made again.
"""
