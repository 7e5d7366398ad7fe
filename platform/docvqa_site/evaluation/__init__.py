"""Evaluations: sending runs to the workers, receiving their reports, and showing the results."""
