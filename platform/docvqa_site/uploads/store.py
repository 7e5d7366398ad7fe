"""What a store of uploaded files does: the `Store` protocol.

Keys and the names of unfinished uploads are made by the site and never contain anything that a user wrote.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import BinaryIO, Protocol

from docvqa_site.uploads.parts import Part, as_ranges, missing_parts
from evaluator.errors import ErrorCode, ProblemError


@dataclass(frozen=True)
class PartUrl:
    """Where to PUT part `number`, and the headers to send with it. A path is on this site."""

    number: int
    url: str
    headers: dict[str, str] = field(default_factory=dict)


class Store(Protocol):
    """A store for big files that arrive in parts. No method trusts what an uploader claims about a part.

    Every part is bound to its SHA-256 when it is stored, and the file is its parts in order. That the file as a whole
    has the SHA-256 that was announced for it is left to the evaluator, which checks it whenever it fetches the file:
    no store reads a file again for that.

    Every method may raise `ProblemError`: `E_STORE_UNAVAILABLE` when the store doesn't answer, `E_STORE_FULL` when it
    has no room left.
    """

    def begin(self, key: str, part_size_bytes: int) -> str:
        """Start an upload to `key` in parts of this size, and return the store's name for it."""

    def part_url(self, key: str, upload: str, part: Part) -> PartUrl:
        """Return a short-lived address that takes this part, of exactly this size and SHA-256, and no other."""

    def list_parts(self, key: str, upload: str) -> list[Part]:
        """Return the parts that are really stored, by number; none once the upload is completed or aborted.

        Their SHA-256 is empty in a store that verifies but doesn't list it.
        """

    def complete(self, key: str, upload: str, parts: list[Part]) -> None:
        """Make the file of these parts. May be called again, also after a crash.

        Their sizes must be those that are stored; their SHA-256 is what the last address of each was signed for, or
        empty if there was none.

        Raises `ProblemError`: `E_UPLOAD_INCOMPLETE` when parts are missing, `E_UPLOAD_STATE` when the upload was
        aborted, `E_ARTIFACT_HASH` when the store made a file of other parts.
        """

    def abort(self, key: str, upload: str) -> None:
        """Delete the unfinished upload and its parts, if there are any."""

    def download_url(self, key: str, filename: str, seconds: int) -> str:
        """Return an address that serves the file, with ranges, for `seconds`. A path is on this site."""

    def put(self, key: str, content: bytes) -> None:
        """Store a small file at once, in place of one of that name; nobody ever sees a part of it."""

    def open(self, key: str) -> BinaryIO:
        """Open the file for reading. Raises `FileNotFoundError`."""

    def size(self, key: str) -> int | None:
        """Return the file's size in bytes; None when there is no such file."""

    def delete(self, key: str) -> None:
        """Remove the file, if there is one."""

    def remove_unfinished(self, before: datetime) -> None:
        """Remove what is left of unfinished uploads that nothing was written to since `before`.

        For leftovers of crashes, which the site doesn't know of: an upload that is still wanted must be younger.
        """

    def free_bytes(self) -> int | None:
        """Return how many bytes there is still room for; None where the store knows no limit."""

    def check(self) -> None:
        """Do nothing if the store can be used now, and raise `ProblemError` otherwise."""


def reject_incomplete(parts: list[Part], stored: list[Part]) -> None:
    """Raise `ProblemError` (`E_UPLOAD_INCOMPLETE`), with those missing, unless all parts are stored in their sizes."""
    sizes = [part.size_bytes for part in parts]
    if missing := missing_parts(sizes, stored):
        raise ProblemError.of(
            ErrorCode.UPLOAD_INCOMPLETE,
            where=f"parts {as_ranges(missing)}",
            expected=f"{len(sizes)} parts, {sum(sizes)} bytes",
            found=f"{len(sizes) - len(missing)} parts",
        )
