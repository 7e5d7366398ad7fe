"""Counted bytes: the checkpoint of a run, computed from its messages."""
