"""The leaderboards: which runs they list, in which order, and what they show of each."""
