"""Submissions: drafts, their files and runs, quotas and run tokens."""
