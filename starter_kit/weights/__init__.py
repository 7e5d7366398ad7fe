"""Weights: the base that training starts from, and checkpoints of other formats converted to safetensors."""
