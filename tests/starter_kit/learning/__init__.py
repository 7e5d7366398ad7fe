"""Tests of local training."""
