"""Examinations of scored runs: conformance, replay and rerun."""
