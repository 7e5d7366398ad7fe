"""The accountants, by name: light to import, where the accountants themselves load scientific libraries."""

from enum import StrEnum


class Accountant(StrEnum):
    """How a composition is bounded: by privacy loss distributions, or by Rényi divergences."""

    PLD = "pld"
    RDP = "rdp"
