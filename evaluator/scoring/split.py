"""The public and the private part of a test set: until organizers reveal the other, scores are on the public one.

The split is a file of the test set's folder, `split.json`, which belongs to the organizers alone: the fraction of the
questions that is private, and a secret salt. Providers are taken in the order of HMAC-SHA-256 of their names under the
salt, each with all of its documents, so that no provider or document has questions on both sides, and whoever lacks the
salt can't know the side of a question, not even of one that he knows. A document whose pages name no provider is taken
by itself.

What it doesn't do: the parts are drawn without regard to keys or to whether a provider was trained on, so by chance one
may be harder than the other. A difference between the two scores of one run is no proof of overfitting; one that grows
with the number of submissions is a sign of it.
"""

import hashlib
import hmac
import secrets
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field, ValidationError

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.base import Message

if TYPE_CHECKING:
    from evaluator.docvqa.dataset import Dataset

FILE = "split.json"
SCHEMA = "pfl-docvqa-split/1"


class Split(Message):
    """How a test set is split; `salt` is secret."""

    private_fraction: float = Field(gt=0, lt=1, allow_inf_nan=False)
    salt: str = Field(pattern=r"^[0-9a-f]{64}$", repr=False)

    @classmethod
    def drawn(cls, private_fraction: float) -> "Split":
        """Return a split with a fresh salt."""
        return cls(private_fraction=private_fraction, salt=secrets.token_hex(32))

    @property
    def sha256(self) -> str:
        """Its identity, which reveals nothing of it: the salt has 256 bits."""
        return hashlib.sha256(f"{SCHEMA}\n{self.private_fraction!r}\n{self.salt}\n".encode()).hexdigest()


def read_split(folder: Path) -> Split | None:
    """Return the split of the test set in a data folder; None where it has none, and all of it is public.

    Raises:
        ProblemError: (`E_DATASET_FORMAT`) The file can't be read.
    """
    path = folder / FILE
    try:
        return Split.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError):
        # The cause would quote the salt.
        raise ProblemError.of(
            ErrorCode.DATASET_FORMAT, FILE, "private_fraction and salt", "something else"
        ) from None


def write_split(folder: Path, split: Split) -> None:
    """Write the file, readable by its owner only. Raises `FileExistsError` where there is one."""
    path = folder / FILE
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(split.model_dump_json(indent=1) + "\n", encoding="utf-8")


def private_questions(dataset: "Dataset", split: Split) -> list[bool]:
    """Return for each question of the test set whether it is in the private part.

    Raises:
        ProblemError: (`E_DATASET_FORMAT`) One of the parts has no question.
    """
    owners = owners_of_questions(dataset)
    sizes = Counter(owners)
    wanted, found = split.private_fraction * len(owners), 0
    private = set()
    for owner in sorted(sizes, key=lambda name: _place(split.salt, name)):
        # It is taken if that brings the part nearer to its size.
        if found + sizes[owner] / 2 <= wanted:
            private.add(owner)
            found += sizes[owner]
    if not 0 < found < len(owners):
        raise ProblemError.of(
            ErrorCode.DATASET_FORMAT,
            where=FILE,
            expected="questions in both parts",
            found=f"{found} private ones of {len(owners)}",
        )
    return [owner in private for owner in owners]


def owners_of_questions(dataset: "Dataset") -> list[str]:
    """Return whose each question is: the same text for two that share a provider or a document, even over others."""
    group: dict[str, str] = {}

    def root(name: str) -> str:
        while (above := group.setdefault(name, name)) != name:
            name = above
        return name

    for page in dataset.pages.values():
        names = [f"document {page.document}", *([f"provider {page.provider}"] if page.provider else [])]
        # The larger name, so that a document goes by its provider.
        roots = sorted(map(root, names))
        group[roots[0]] = roots[-1]
    return [root(f"document {dataset.pages[question.page].document}") for question in dataset.questions]


def clusters_in(owners: Sequence[str], private: Sequence[bool]) -> tuple[int, int]:
    """Return how many independent owners the public and the private part have."""
    sides = set(zip(owners, private, strict=True))
    return sum(not side for _, side in sides), sum(side for _, side in sides)


def _place(salt: str, name: str) -> bytes:
    return hmac.digest(bytes.fromhex(salt), name.encode(), "sha256")
