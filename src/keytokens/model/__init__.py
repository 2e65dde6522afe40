"""The mathematics of the model on counts and on bags of vectors: no strings, no files."""
