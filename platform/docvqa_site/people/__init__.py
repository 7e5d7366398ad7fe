"""What the site stores about a person: one table, by which it is exported and erased."""
