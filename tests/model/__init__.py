"""Tests of keytokens.model."""
