"""Template tags of submissions."""
