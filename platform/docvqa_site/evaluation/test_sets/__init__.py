"""Test sets that are split: on which part results are, the reveal of the other part, scores by type of question."""
