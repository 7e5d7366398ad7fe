"""Tests of the site in one process, and of the demonstration."""
