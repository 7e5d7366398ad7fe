"""Tests of the secure aggregation protocol."""
