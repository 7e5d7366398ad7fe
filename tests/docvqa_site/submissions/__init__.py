"""Tests of submissions, runs and artifacts: states, quota and pages."""
