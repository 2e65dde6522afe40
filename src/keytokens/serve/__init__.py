"""The explorer as a small local web application: the page against stored models, and training with a progress bar.

store      models, uploads and runs: a SQLite file beside plain folders
training   one run, in a process of its own
runs       starts, watches and ends those processes
guard      who may ask: hosts, origins, the token, sizes and times
app        the routes
"""

from .app import create_app
from .guard import Limits
from .store import Store

__all__ = ["Limits", "Store", "create_app"]
