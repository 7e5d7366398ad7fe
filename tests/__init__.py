"""Tests of the whole repository: they mirror the code's tree."""
