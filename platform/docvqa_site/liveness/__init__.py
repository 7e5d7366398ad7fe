"""Check-ins of the site's processes, which every process can read."""
