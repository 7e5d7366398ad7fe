"""The template tags of liveness."""
