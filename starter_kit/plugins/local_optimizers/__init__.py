"""Local optimizers: see `starter_kit.learning.plugins`."""
