"""Tests of how privacy proofs are shown."""
