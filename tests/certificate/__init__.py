"""Tests of keytokens.certificate."""
