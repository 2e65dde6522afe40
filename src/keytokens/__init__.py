"""keytokens: a text classifier that shows, and proves, which tokens decide."""
