"""The messages of the REST API, version 1, about people: their team, its invitations and files, and notifications."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from evaluator.messages.api import Request, Response
from evaluator.messages.jobs import ArtifactKind


class ChangedAccount(Request):
    """Change one's own name and ORCID iD; a field that is left out stays. An iD that is sent so isn't verified.

    Attributes:
        shows_orcid: Whether the iD appears on the pages of the team and its methods.
    """

    name: str | None = None
    orcid: str | None = None
    shows_orcid: bool | None = None


class TeamMember(Response):
    """A member of one's own team. `id` is that of the membership."""

    id: int
    name: str
    email: str
    role: Literal["owner", "member"]
    joined_at: datetime


class OwnTeam(Response):
    """The team that one is in. `url` is the address of its public page, `role` one's own.

    `country` is a code of two letters (ISO 3166), or empty.
    """

    name: str
    slug: str
    url: str
    affiliation: str
    website: str
    country: str = ""
    role: Literal["owner", "member"]
    members: list[TeamMember]


class NewTeam(Request):
    """Create a team, which one then owns."""

    name: str
    affiliation: str = ""
    website: str = ""
    country: str = ""


class ChangedTeam(Request):
    """Change a team's details; a field that is left out stays. The name can't be changed: citations carry it."""

    affiliation: str | None = None
    website: str | None = None
    country: str | None = None


class NewInvitation(Request):
    """Invite the person behind an email address."""

    email: str


class SentInvitation(Response):
    """An invitation of one's team that wasn't accepted or revoked; a mail has the link that accepts it."""

    id: int
    email: str
    invited_by: str
    created_at: datetime
    expires_at: datetime


class SentInvitationPage(Response):
    """A part of the list of a team's open invitations, newest first; `count` is the number of all of them."""

    items: list[SentInvitation]
    count: int


class ReceivedInvitation(Response):
    """An invitation to a verified address of one's own, which can be accepted now."""

    id: int
    team: str
    invited_by: str
    created_at: datetime
    expires_at: datetime


class ReceivedInvitationPage(Response):
    """A part of the list of invitations to oneself, newest first; `count` is the number of all of them."""

    items: list[ReceivedInvitation]
    count: int


class OwnArtifact(Response):
    """A file of a submission of one's team.

    Attributes:
        run: The run that it belongs to; null for a file of the submission as a whole, such as the privacy proof.
        version: Of a proof, which may be revised; 1 for any other file.
        superseded_at: When a newer version of the proof took its place; null for the newest.
        state: `expired` once a rule of retention has removed the file.
    """

    id: UUID
    kind: ArtifactKind
    run: UUID | None
    filename: str
    size_bytes: int
    sha256: str
    version: int
    superseded_at: datetime | None
    state: Literal["completed", "expired"]


class DownloadUrl(Response):
    """An address from which a file can be fetched for some seconds, without a token."""

    url: str
    expires_in_s: int


class NotificationInfo(Response):
    """A notification. `url` is the page that it is about; empty where there is none."""

    id: int
    kind: str
    subject: str
    text: str
    url: str
    created_at: datetime
    read_at: datetime | None


class NotificationPage(Response):
    """A part of the list of one's notifications, newest first; `count` is the number of all of them."""

    items: list[NotificationInfo]
    count: int


class ReadUntil(Request):
    """Mark notifications as read, up to the one with this id; all of them if it is null."""

    until: int | None = None


class MailChoice(Response):
    """The kinds of notification that come by mail, and all kinds that could."""

    kinds: list[str]
    possible: list[str]


class NewMailChoice(Request):
    """Choose the kinds of notification that come by mail. Those about the security of the account always do."""

    kinds: list[str]
