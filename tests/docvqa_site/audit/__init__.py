"""Tests of the record of who changed what."""
