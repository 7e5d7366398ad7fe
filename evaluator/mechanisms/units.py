"""Whom a mechanism protects, and which data sets are neighbors."""

from enum import StrEnum


class PrivacyUnit(StrEnum):
    """Whose presence is hidden: all of a provider's documents, all of a client's data, or a single record."""

    PROVIDER = "provider"
    CLIENT = "client"
    RECORD = "record"


class Adjacency(StrEnum):
    """Which data sets are neighbors: one has a unit more (`add_remove`), or one unit is another (`replace`)."""

    ADD_REMOVE = "add_remove"
    REPLACE = "replace"
