"""Where a round's clients run."""
