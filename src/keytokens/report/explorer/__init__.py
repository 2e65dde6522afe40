"""The explorer: one page with the model alive inside it."""

from .model import PageModel
from .page import explorer_page, style
from .report import MOST_DOCUMENTS, explorer_parts, report_page, write_report

__all__ = [
    "MOST_DOCUMENTS",
    "PageModel",
    "explorer_page",
    "explorer_parts",
    "report_page",
    "style",
    "write_report",
]
