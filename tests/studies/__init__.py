"""Studies: what the pages of results under docs/ are made of."""
