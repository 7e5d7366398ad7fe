"""Tests of the outbox, with real mail servers that work, reject and hang."""
