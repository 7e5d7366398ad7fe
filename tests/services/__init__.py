"""Throw-away services that tests use: PostgreSQL, Redis, an S3 server, a browser and free ports."""
