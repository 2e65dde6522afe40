"""Tests of keytokens.lab.descent."""
