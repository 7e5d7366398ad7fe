"""Tests of ANLS, accuracy, groups and resumable scoring."""
