"""What people start: the command line, the page, the server, and the one road from a table to a model."""
