"""Tests of keytokens.proof."""
