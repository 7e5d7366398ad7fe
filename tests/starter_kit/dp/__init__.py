"""Tests of sampling, clipping and noise as they are executed."""
