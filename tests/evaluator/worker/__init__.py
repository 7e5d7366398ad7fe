"""Tests of the worker: tasks, broker and artifacts, with a real broker and an artifact server."""
