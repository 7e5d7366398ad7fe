"""The public pages, and the list of a team's own submissions."""
