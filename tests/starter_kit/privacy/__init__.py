"""Tests of `pfl privacy`."""
