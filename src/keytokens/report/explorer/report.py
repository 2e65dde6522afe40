"""A report on a model and labelled texts: one file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ...files import write_whole
from .documents import choose, packed_documents
from .model import PageModel
from .overview import judge, overview
from .pack import pack
from .page import explorer_page

__all__ = ["MOST_DOCUMENTS", "explorer_parts", "write_report"]

MOST_DOCUMENTS = 2_000


def explorer_parts(
    model: PageModel,
    title: str,
    texts: Sequence[str] = (),
    labels: Sequence[Any] = (),
    P: NDArray[Any] | None = None,
    *,
    scored: NDArray[Any] | None = None,
    note: str = "",
    most: int = MOST_DOCUMENTS,
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The containers of the page by name, and the numbers of its first view; without P only the model.

    P is what the model says of the texts; `scored` is what the score is of where that differs, as the probabilities of
    a model that had not seen them, and `note` then says so on the page.
    """
    if P is None:
        return {"model": model.packed()}, {"title": title, "tokens": len(model.tokens)}
    judged = judge(model.classes, labels, P)
    chosen = choose(texts, judged, most)
    score = overview(judged if scored is None else judge(model.classes, labels, scored))
    facts = {**score, "title": title, "note": note, "shown": len(chosen.rows), "tokens": len(model.tokens)}
    documents = packed_documents(texts, judged, chosen)
    return {"model": model.packed(), "overview": pack(facts), "documents": documents}, facts


def write_report(
    path: Path, model: PageModel, texts: Sequence[str], labels: Sequence[Any], P: NDArray[Any], title: str, most: int
) -> dict[str, Any]:
    """Write the page, whole or not at all; returns its numbers with `bytes`, the size of the file."""
    contents, facts = explorer_parts(model, title, texts, labels, P, most=most)
    content = explorer_page(title, contents).encode("utf-8")
    write_whole(path, content)
    return {**facts, "page": str(path), "bytes": len(content), "whole_size": model.whole_size}
