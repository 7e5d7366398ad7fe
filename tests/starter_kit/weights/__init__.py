"""Tests of base weights and of converting pickled ones."""
