"""The laboratory: the theory of both papers, runnable. The product never imports it."""
