"""Tests of split test sets: their parts, and scores by type of question."""
