"""Tests of the training methods, one round by hand each."""
