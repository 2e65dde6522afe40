"""Yelp reviews: the two panels of the trained-embeddings paper on real texts."""

from __future__ import annotations

from .real_text import real_figure

FIGURE = real_figure("yelp-reviews", "yelp_reviews", "Yelp reviews", balanced=True)
