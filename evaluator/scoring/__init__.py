"""The score of a checkpoint: its answers to a test set, ANLS and accuracy, and their means by group."""
