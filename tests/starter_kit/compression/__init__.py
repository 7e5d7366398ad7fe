"""Tests of adapters and of packed messages."""
