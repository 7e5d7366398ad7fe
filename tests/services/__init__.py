"""Throw-away services that tests use: PostgreSQL, Redis, a browser and free ports."""
