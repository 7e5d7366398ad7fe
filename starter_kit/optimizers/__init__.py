"""Optimizers of a client's local training that PyTorch does not have."""
