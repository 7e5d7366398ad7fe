"""Tests of reading checkpoints: headers, contents, shards and changes."""
