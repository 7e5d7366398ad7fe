"""Forging records on the small task of the reproduction: what it gains, and what the checks say of it."""
