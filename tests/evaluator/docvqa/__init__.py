"""Tests of data sets, of the VT5 model and of its answers."""
