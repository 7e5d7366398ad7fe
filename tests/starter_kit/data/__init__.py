"""Tests of making, importing and exporting data sets."""
