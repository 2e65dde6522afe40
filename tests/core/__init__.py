"""Tests of keytokens.core."""
