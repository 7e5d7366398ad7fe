"""Tests of the reproduction of the papers' order."""
