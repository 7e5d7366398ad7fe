"""Tests of the ranking rules, of boards and of their exports."""
