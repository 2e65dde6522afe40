"""Tests of keytokens.text."""
