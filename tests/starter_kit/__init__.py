"""Tests of the starter kit."""
