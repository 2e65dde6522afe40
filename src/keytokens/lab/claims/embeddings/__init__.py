"""Claims of the paper on trained embeddings."""
