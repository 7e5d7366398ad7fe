"""Tests of the vocabulary of mechanisms: sampling, noise and events."""
