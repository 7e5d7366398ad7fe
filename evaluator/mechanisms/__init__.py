"""What is private and how: sampling, noise, the privacy unit, adjacency, and the events that accountants bound."""
