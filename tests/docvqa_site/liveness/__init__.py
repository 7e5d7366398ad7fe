"""Tests of the processes' signs of life."""
