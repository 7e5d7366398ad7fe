"""Accepting terms, and putting a file of the organizers into the store."""

import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from django.db import transaction

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.challenge.models import Track
from docvqa_site.downloads.models import Acceptance, Download, Terms
from docvqa_site.uploads.models import Upload
from docvqa_site.uploads.sending import send
from docvqa_site.uploads.stores import current_store

# Of the keys in the store, as it names folders.
PREFIX = "dl"


@transaction.atomic
def accept(terms: Terms, user: User) -> Acceptance:
    """Record that the user accepts this version of the terms; the first time counts."""
    acceptance, is_new = Acceptance.objects.get_or_create(terms=terms, user=user)
    if is_new:
        record(user, "terms.accepted", terms, title=terms.title, version=terms.version)
    return acceptance


def has_accepted(user: User | None, terms: Terms | None) -> bool:
    """Return whether nothing is left to accept; `user` is None for somebody who hasn't logged in."""
    if terms is None:
        return True
    return user is not None and Acceptance.objects.filter(terms=terms, user=user).exists()


def add_download(
    path: Path, slug: str, *, track: Track | None = None, actor: User | None = None, **fields: object
) -> Download:
    """Put the file into the store and offer it under `slug`; one of that name is replaced, and its file removed.

    With a `track` it is for this one.

    Raises:
        ProblemError: The store doesn't take the file.
    """
    key = f"{PREFIX}/{secrets.token_hex(16)}"
    digest = send(path, key, current_store())
    stored = _Content(path.name, path.stat().st_size, digest, store_key=key)
    return _offer(stored, slug, track=track, actor=actor, **fields)


def add_uploaded(upload: Upload, slug: str, *, track: Track, actor: User, **fields: object) -> Download:
    """Offer a file of the organizers that was uploaded in parts, for the track."""
    stored = _Content(upload.filename, upload.size_bytes, upload.sha256, store_key=upload.store_key)
    with transaction.atomic():
        download = _offer(stored, slug, track=track, actor=actor, **fields)
        # The file is the download's from now on, and no longer one that nothing refers to.
        upload.delete()
    return download


@dataclass(frozen=True)
class _Content:
    """A file in the store, or a link to one that is elsewhere."""

    filename: str
    size_bytes: int
    sha256: str
    store_key: str = ""
    link: str = ""


def _offer(
    content: _Content, slug: str, *, track: Track | None, actor: User | None, **fields: object
) -> Download:
    with transaction.atomic():
        replaced = list(
            Download.objects.filter(slug=slug).exclude(store_key="").values_list("store_key", flat=True)
        )
        download, is_new = Download.objects.update_or_create(
            slug=slug, defaults={**fields, **asdict(content)}
        )
        stated = {"link": content.link} if content.link else {"sha256": content.sha256}
        # Also once the track no longer has the download, its history lists this.
        stated_track = {"track": track.pk} if track else {}
        record(actor, "download.added" if is_new else "download.replaced", download, **stated, **stated_track)
        # One that is for all tracks is for this one, too.
        if track is not None and (is_new or download.tracks(manager="with_drafts").exists()):
            download.tracks.add(track)
    for key in replaced:
        current_store().delete(key)
    return download


def add_link(
    link: str, slug: str, *, filename: str, sha256: str = "", track: Track, actor: User, **fields: object
) -> Download:
    """Offer a file that is elsewhere, for the track; a download of that name is replaced, and its file removed."""
    content = _Content(filename, 0, sha256, link=link)
    return _offer(content, slug, track=track, actor=actor, **fields)


@transaction.atomic
def take_from(track: Track, downloads: Iterable[Download]) -> None:
    """Let downloads be for the track no more. One that was for it alone is no longer offered, or all would see it."""
    for download in downloads:
        if list(download.tracks(manager="with_drafts").all()) == [track]:
            Download.objects.filter(pk=download.pk).update(is_offered=False)
        download.tracks.remove(track)
