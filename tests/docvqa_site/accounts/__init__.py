"""Tests of people, their log-in and their API tokens."""
