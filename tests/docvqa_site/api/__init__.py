"""Tests of the REST API: every endpoint, and who may call it."""
