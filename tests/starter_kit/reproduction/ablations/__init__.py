"""Tests of the ablations of track 1's winner."""
