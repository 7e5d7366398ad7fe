"""Checkpoints: their header, their contents against the base weights, shards, and what training changed."""
