"""Tests of metrics, plots, reports and comparisons."""
