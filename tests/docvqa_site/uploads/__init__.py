"""Tests of resumable uploads and of the stores."""
