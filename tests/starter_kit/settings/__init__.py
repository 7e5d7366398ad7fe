"""Tests of settings files and of what is rejected."""
