"""Resumable uploads into the store, and downloads from it."""
