"""Files and links that organizers offer for a track in the browser."""

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from django.db import transaction
from django.db.models import Count, QuerySet

from docvqa_site.accounts.models import User
from docvqa_site.challenge.models import RuleChange, Track
from docvqa_site.downloads.models import Download, Terms
from docvqa_site.downloads.services import add_download, add_link, add_uploaded, take_from

FIELDS = ("kind", "title", "summary", "license", "license_url")


def of_track_alone(track: Track) -> QuerySet[Download]:
    """Return the downloads of the track that no other track has."""
    counted = Download.objects.annotate(number=Count("tracks"))
    return counted.filter(number=1, pk__in=Download.objects.filter(tracks=track))


def add_offered(track: Track, values: Mapping[str, Any], *, actor: User) -> Download:
    """Offer what a `DownloadForm` has validated, for the track alone, so that it is public when the track is.

    The page of a public track lists it as a change. Raises `ProblemError` if the store doesn't take the file.
    """
    download = _add(track, values, actor=actor)
    stated = f"; SHA-256 {download.sha256}" if download.sha256 else ""
    _note(track, f"“{download}” {'replaced' if values['replaces'] else 'added'}{stated}")
    return download


@transaction.atomic
def choose_downloads(track: Track, chosen: Iterable[Download]) -> None:
    """Let these be the downloads of the track. The page of a public track lists what changes."""
    before, after = set(Download.objects.filter(tracks=track)), set(chosen)
    for download in after:
        download.tracks.add(track)
    take_from(track, before - after)
    changes = [(after - before, "added"), (before - after, "removed")]
    _note(
        track,
        ", ".join(f"“{one}” {done}" for found, done in changes for one in sorted(found, key=str)),
    )


def _note(track: Track, text: str) -> None:
    if text and not track.is_draft:
        RuleChange.objects.create(track=track, text=f"Downloads: {text}.")


def _add(track: Track, values: Mapping[str, Any], *, actor: User) -> Download:
    fields = {name: values[name] for name in FIELDS}
    if upload := values["upload"]:
        return add_uploaded(upload, values["slug"], track=track, actor=actor, **fields, terms=_terms(values))
    if values["file"] is None:
        filename = values["filename"] or _name_in(values["link"]) or values["slug"]
        with transaction.atomic():
            return add_link(
                values["link"],
                values["slug"],
                filename=filename,
                sha256=values["sha256"],
                track=track,
                actor=actor,
                **fields,
                terms=_terms(values),
            )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / values["file"].name
        with path.open("wb") as file:
            file.writelines(values["file"].chunks())
        return add_download(path, values["slug"], track=track, actor=actor, **fields, terms=_terms(values))


def _terms(values: Mapping[str, Any]) -> Terms | None:
    """Return the terms that were chosen, or new ones."""
    if not values["terms_title"]:
        terms: Terms | None = values["terms"]
        return terms
    return Terms.objects.create(
        title=values["terms_title"], version=values["terms_version"] or "1", text=values["terms_text"]
    )


def _name_in(link: str) -> str:
    return PurePosixPath(unquote(urlsplit(link).path)).name
