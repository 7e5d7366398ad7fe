"""Tests of run folders: opened, written, interrupted, resumed."""
