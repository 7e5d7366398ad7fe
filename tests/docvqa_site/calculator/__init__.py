"""Tests of the privacy calculator."""
