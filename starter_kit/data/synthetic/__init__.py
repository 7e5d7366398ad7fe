"""Synthetic invoices: made-up providers, drawn pages, questions about what is printed."""

from starter_kit.data.synthetic.generation import SyntheticSettings, generate

__all__ = ["SyntheticSettings", "generate"]
