"""The messages of the REST API about files: what a site offers, and uploads in parts."""

from typing import Literal, Self
from uuid import UUID

from pydantic import Base64Bytes, BaseModel, ConfigDict, Field, StrictInt, model_validator

from evaluator.messages.api import SHA256, Request, Response
from evaluator.messages.jobs import ArtifactKind

MAX_PARTS_OF_A_REQUEST = 1000
# The header of a checkpoint of a thousand tensors, and thousands of rows of a log.
HEAD_BYTES = 256 * 1024


class TermsInfo(Response):
    """The terms of a download, in one version.

    Attributes:
        text: In Markdown.
        accepted: Whether the account that asks has accepted this version.
    """

    id: int
    title: str
    version: str
    text: str
    url: str
    accepted: bool


class DownloadInfo(Response):
    """A file that the organizers offer.

    Attributes:
        url: The address that leads to the file, once its terms are accepted; it takes ranges.
        size_bytes: 0 where the organizers don't say, as `sha256` is empty.
        tracks: The tracks that it is for; empty where it is for all.
        terms: Null where there are none.
    """

    slug: str
    kind: Literal["data", "weights", "kit", "notebook"]
    title: str
    summary: str
    filename: str
    size_bytes: int
    sha256: str
    license: str
    url: str
    tracks: list[str] = []
    terms: TermsInfo | None


class NewFile(Request):
    """A file for a place in a draft.

    Attributes:
        run: Null for a file of the submission as a whole, such as the privacy proof.
        head: The first 256 KiB of the file, or all of a shorter one, in base64; may be empty. A file that is wrong from
            its beginning is rejected by it.
    """

    submission: UUID
    run: UUID | None = None
    kind: str
    filename: str = Field(min_length=1, max_length=1000)
    size_bytes: StrictInt
    head: Base64Bytes = b""

    @model_validator(mode="after")
    def _head_is_complete(self) -> Self:
        if self.head and len(self.head) != min(self.size_bytes, HEAD_BYTES):
            raise ValueError(f"A head of {HEAD_BYTES} bytes, or the whole of a shorter file, is expected")
        return self


class NewUpload(NewFile):
    """Announce a file, with its SHA-256."""

    sha256: str


class UploadStatus(Response):
    """An upload, and the size of the parts that its file must be cut into; a completed one is in its place already."""

    id: UUID
    part_size_bytes: int
    parts_total: int
    state: Literal["open", "completed", "aborted", "expired"]


class UploadPart(BaseModel):
    """One part of a file. `number` counts from 1."""

    model_config = ConfigDict(frozen=True, extra="forbid", from_attributes=True)

    number: int
    size_bytes: StrictInt
    sha256: str = Field(pattern=SHA256)


class StoredParts(Response):
    """The parts of an upload that the site has stored."""

    parts: list[UploadPart]


class WantedParts(Request):
    """Request an address for each of these parts."""

    parts: list[UploadPart] = Field(max_length=MAX_PARTS_OF_A_REQUEST)


class PartUrl(Response):
    """The address that takes part `number` by PUT, with these headers; it takes no other part and expires soon."""

    number: int
    url: str
    headers: dict[str, str]


class PartUrls(Response):
    """One address for each part that was requested."""

    urls: list[PartUrl]


class StoredArtifact(Response):
    """A completed upload in its role in a draft.

    Attributes:
        challenge: Of a training record: 32 random bytes in hexadecimal, which the site draws once for the record's run
            token, and from which the run's annex is made; of a transcript whose messages are too large to be attached
            as a whole: the same, drawn once for this file, from which the rounds to open follow; null for any other.
        drawn_rounds: How many rounds the challenge draws, besides the last one; null without a challenge.
        not_displayed: Of a privacy proof: what reviewers don't see of it as Jupyter shows it, such as "2 formulas, 1
            picture"; empty where they see everything, and for any other file.
        removed: The names of other files that were removed from the run, since they belong to another record or index.
    """

    artifact: UUID
    kind: ArtifactKind
    size_bytes: int
    sha256: str
    challenge: str | None = None
    drawn_rounds: int | None = None
    not_displayed: str = ""
    removed: list[str] = []
