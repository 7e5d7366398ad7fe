"""Tests of the processes' check-ins."""
