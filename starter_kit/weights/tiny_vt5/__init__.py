"""The tiny VT5 for trials, which ships with the kit: a reference folder, and the note of how it was made.

`make base-weights` makes both again, by `pretraining`.
"""

from starter_kit.weights.tiny_vt5.reference_files import FOLDER, copy_to, digests

__all__ = ["FOLDER", "copy_to", "digests"]
