"""The explorer: one page with the model alive inside it."""

from .page import explorer_page, explorer_parts, write_report

__all__ = ["explorer_page", "explorer_parts", "write_report"]
