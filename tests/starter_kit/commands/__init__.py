"""Tests of the verbs of `pfl`."""
