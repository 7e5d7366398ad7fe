"""Forms: drawn pages of a few labelled fields, which the tiny VT5 can read, with questions that follow conventions."""

from starter_kit.data.forms.generation import FormSettings, generate

__all__ = ["FormSettings", "generate"]
