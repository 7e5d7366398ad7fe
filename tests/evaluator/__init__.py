"""Tests of the evaluator."""
