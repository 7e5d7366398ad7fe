"""Forms: drawn pages of a few labelled fields, which the tiny VT5 can read, with questions that follow conventions."""

from starter_kit.data.forms.generation import FormSettings, generate
from starter_kit.data.forms.skewed import PublishedSettings, SkewedSettings, generate_skewed

__all__ = ["FormSettings", "PublishedSettings", "SkewedSettings", "generate", "generate_skewed"]
