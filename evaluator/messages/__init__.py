"""What the site, the workers and the kit send each other."""
