"""Yelp sentences: the two panels of the trained-embeddings paper on real texts."""

from __future__ import annotations

from .real_text import real_figure

FIGURE = real_figure("yelp-sentences", "yelp_sentences", "Yelp sentences", balanced=True)
