"""News of the benchmark, which the organizers write."""
