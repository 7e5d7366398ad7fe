"""Tests of the public pages and of the list of a team's own submissions."""
