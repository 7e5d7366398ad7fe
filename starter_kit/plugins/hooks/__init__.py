"""Hooks of local training: see `starter_kit.learning.plugins`."""
