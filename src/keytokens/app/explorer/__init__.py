"""The explorer: one page with the model alive inside it."""

from .model import PageModel
from .page import explorer_page, explorer_parts, write_report

__all__ = [
    "PageModel",
    "explorer_page",
    "explorer_parts",
    "write_report",
]
