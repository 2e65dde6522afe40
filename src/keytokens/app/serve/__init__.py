"""The explorer as a small local web application: the page against stored models, and training with a progress bar.

store      models, uploads and runs: a SQLite file beside plain folders
models     a model's folder, and the models that are in memory
worker     a look at an upload, or a training, in a process of its own
runs       the queue of trainings
guard      who may ask: hosts, origins, the token, sizes and times
app        the routes and the first page

The names are imported when they are asked for: the processes need no web server.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .app import create_app
    from .guard import Limits
    from .store import Store

__all__ = ["Limits", "Store", "create_app"]

_HOME = {"Limits": "guard", "Store": "store", "create_app": "app"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
