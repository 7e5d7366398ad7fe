"""Parametrizations of layers: what is trained in place of a whole weight, one in each file."""
