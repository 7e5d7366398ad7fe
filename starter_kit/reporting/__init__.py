"""What a training run shows to people: numbers by round, plots, a report, a comparison, TensorBoard."""
