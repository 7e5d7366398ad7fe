"""What pages show of an evaluation and its results."""
