"""Tests of what `pfl new` writes."""
