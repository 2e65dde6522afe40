"""Pages and terminal text, from the records of `explanation` only."""

from .page import documents_page, explanation_fragment, explanation_page
from .terminal import explanation_text, key_tokens_text, wants_colour

__all__ = [
    "documents_page",
    "explanation_fragment",
    "explanation_page",
    "explanation_text",
    "key_tokens_text",
    "wants_colour",
]
