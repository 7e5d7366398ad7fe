"""A whole site on one machine: its processes, and the demonstration that runs on them."""
