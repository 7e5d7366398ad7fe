"""What a worker has, as it reports it: the base weights, test sets and leakage sets among which organizers choose."""

from typing import Annotated

from pydantic import Field

from evaluator.messages.base import Message
from evaluator.messages.jobs import FolderName

INVENTORY_TASK = "docvqa_site.receive_inventory"  # (inventory)
# More than any worker has; what a report may make the site store is limited.
MAX_FOLDERS = 200

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Folders = Annotated[dict[FolderName, Sha256], Field(max_length=MAX_FOLDERS)]
# "FOLDER/SPLIT", which no folder is named.
SplitName = Annotated[str, Field(pattern=r"^[^/]{1,64}/[^/]{1,64}$")]
Splits = Annotated[dict[SplitName, Sha256], Field(max_length=MAX_FOLDERS)]


class Inventory(Message):
    """The base weights, test sets and leakage sets of a worker, by the names of their folders, each with its SHA-256.

    It isn't signed: a worker that waits for its first job holds no secret. Nothing follows from it but what organizers
    are offered and warned of.

    Attributes:
        references: Those with weights, by the hash of the weights.
        test_sets: Those with a split `test`, by the hash that scores on it are stamped with.
        leakage_sets: The other splits of data under `test_sets/`, as "FOLDER/SPLIT", by the same hash.
        unenforced: What the worker's kernel doesn't enforce on steps, in words.
    """

    worker: str = Field(min_length=1, max_length=200)
    references: Folders = {}
    test_sets: Folders = {}
    leakage_sets: Splits = {}
    unenforced: Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=10)] = []
