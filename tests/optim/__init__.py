"""Tests of keytokens.optim."""
