"""The terminal: parse, call, show, exit code. One file a command."""

from .app import main

__all__ = ["main"]
