"""What a worker has, as it reports it: the base weights and test sets among which organizers choose."""

from typing import Annotated

from pydantic import Field

from evaluator.messages.base import Message
from evaluator.messages.jobs import FolderName

INVENTORY_TASK = "portal.receive_inventory"  # (inventory)
# More than any worker has; what a report may make the site store is limited.
MAX_FOLDERS = 200

Folders = Annotated[
    dict[FolderName, Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]], Field(max_length=MAX_FOLDERS)
]


class Inventory(Message):
    """The base weights and test sets of a worker, by the names of their folders, each with its SHA-256.

    It isn't signed: a worker that waits for its first job holds no secret. Nothing follows from it but what organizers
    are offered and warned of.

    Attributes:
        references: Those with weights, by the hash of the weights.
        test_sets: Those with a split `test`, by the hash that scores on it are stamped with.
    """

    worker: str = Field(min_length=1, max_length=200)
    references: Folders = {}
    test_sets: Folders = {}
