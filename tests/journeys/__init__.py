"""Whole paths through a site, as its visitors, participants, reviewers and organizers go them in a browser."""
