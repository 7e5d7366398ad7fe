"""The template tags of evaluations."""
