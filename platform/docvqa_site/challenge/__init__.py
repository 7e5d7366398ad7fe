"""The tracks of the challenge and their rules."""
