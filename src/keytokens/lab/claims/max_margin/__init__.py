"""Claims of the paper on max-margin token selection."""
