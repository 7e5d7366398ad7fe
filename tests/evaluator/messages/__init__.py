"""Tests of the messages between site, workers and kit."""
