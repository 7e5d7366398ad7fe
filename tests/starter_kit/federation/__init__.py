"""Tests of the rounds: messages, aggregation, lost clients."""
