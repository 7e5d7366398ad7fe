"""Tests of the judges of examinations."""
