"""Drafts of tracks: created, published and discarded."""

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.audit.versions import boards_changed
from docvqa_site.challenge.models import Phase, Track
from docvqa_site.downloads.models import Download
from docvqa_site.downloads.services import take_from
from docvqa_site.evaluation.rehearsal import discard_rehearsal
from docvqa_site.organizers.setup.readiness import readiness

# What a draft doesn't take over from the track that it is copied from.
OWN = {"id", "slug", "name", "ranking", "position", "is_draft", "paused"}


@transaction.atomic
def create_draft(*, name: str, slug: str, ranking: str, source: Track | None, actor: User) -> Track:
    """Create a draft with one phase without dates, or with the rules, phases and downloads of another track."""
    last = Track.with_drafts.aggregate(Max("position"))["position__max"] or 0
    track = Track(slug=slug, name=name, ranking=ranking, position=last + 1, is_draft=True)
    phases = [Phase()]
    if source is not None:
        for field in Track._meta.concrete_fields:
            if field.name not in OWN:
                setattr(track, field.name, getattr(source, field.name))
        phases = list(source.phases.all())
    track.save()
    for phase in phases:
        phase.pk, phase.track = None, track
        phase._state.adding = True
        phase.save()
    for download in Download.objects.filter(tracks=source) if source else ():
        download.tracks.add(track)
    if actor.organizes_single_tracks:
        track.organizers.add(actor)
    record(actor, "track.drafted", track, copy_of=source.slug if source else "")
    return track


@transaction.atomic
def publish(track: Track, *, actor: User) -> bool:
    """Show the draft to everybody, if it is ready; return whether it was published. Its test is removed."""
    current = Track.with_drafts.select_for_update().get(pk=track.pk)
    if not current.is_draft or not readiness(current, timezone.now()).is_ready:
        return False
    try:
        current.full_clean()
    except ValidationError:
        return False
    discard_rehearsal(current)
    current.is_draft = False
    current.save(update_fields=["is_draft"])
    boards_changed(current.pk)
    record(actor, "track.published", current)
    return True


@transaction.atomic
def discard(track: Track, *, actor: User) -> None:
    """Remove a draft, with its test. Downloads stay, for other tracks to use."""
    current = Track.with_drafts.select_for_update().get(pk=track.pk, is_draft=True)
    record(actor, "track.discarded", current, slug=current.slug, name=current.name)
    discard_rehearsal(current)
    take_from(current, Download.objects.filter(tracks=current))
    current.delete()
