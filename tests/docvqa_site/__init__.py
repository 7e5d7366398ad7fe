"""Tests of the site, on a real PostgreSQL or SQLite database."""
