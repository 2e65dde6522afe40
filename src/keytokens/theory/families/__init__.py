"""The claims, one file a family."""
