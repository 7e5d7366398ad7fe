"""Tests of tracks and their rules."""
