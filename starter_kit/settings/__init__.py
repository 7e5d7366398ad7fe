"""Settings of a run: read, checked, and turned into a plan."""
