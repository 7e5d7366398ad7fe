"""Tests of training records: lines, chain, signature, annex, checks and ε."""
