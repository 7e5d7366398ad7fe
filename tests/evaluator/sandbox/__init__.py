"""Tests of the sandbox: what can't be done from inside, and what becomes of who tries."""
