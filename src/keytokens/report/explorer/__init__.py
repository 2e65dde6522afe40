"""The explorer: one page with the model alive inside it."""

from .model import PageModel
from .page import explorer_page, style
from .report import MOST_DOCUMENTS, explorer_parts, write_report

__all__ = [
    "MOST_DOCUMENTS",
    "PageModel",
    "explorer_page",
    "explorer_parts",
    "style",
    "write_report",
]
