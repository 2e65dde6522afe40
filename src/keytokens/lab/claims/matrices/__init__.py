"""Claims of papers that follow these two, on attention by a matrix."""
