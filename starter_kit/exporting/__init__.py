"""Runs as other libraries expect them."""
