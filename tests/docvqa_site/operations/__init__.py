"""Tests of probes, metrics, logs, backup and restore."""
