"""Tests of attempts at runs: dispatch, intake, watchdog and notifications."""
