"""The mathematics of the model on counts: no strings, no files."""
