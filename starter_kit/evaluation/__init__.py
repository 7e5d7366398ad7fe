"""What the evaluator finds about a run, computed by its own code on the participant's own disk."""
