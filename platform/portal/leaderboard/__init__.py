"""The leaderboards: ranking, pages, CSV and API."""
