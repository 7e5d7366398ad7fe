"""What workers report, from its arrival to a run's result."""
