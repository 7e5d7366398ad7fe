"""Tests of proof reviews and of the rendering of proofs."""
