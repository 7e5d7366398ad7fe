"""Tests of the communication log and of its plausibility."""
