"""Changes of a track's phases: what each would do, and making them, with a public note and an audit entry."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.template.defaultfilters import pluralize
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.audit.versions import boards_changed
from docvqa_site.boards.boards import boards_of
from docvqa_site.boards.effects import effect
from docvqa_site.boards.ordering import first_of_phase
from docvqa_site.boards.ranking import rank
from docvqa_site.challenge.models import EXAMINED_LEVELS, Anonymity, Phase, ResultsTiming, RuleChange, Track
from docvqa_site.challenge.phases import closed_because, nearest_phase, overlap, phase_at
from docvqa_site.notifications.kinds import Kind
from docvqa_site.organizers.change_notifications import notified_sentence, notify_of_change
from docvqa_site.organizers.track_changes import (
    Preview,
    board_sentences,
    in_words,
    note,
    opening_sentences,
    quota_sentences,
    recent_times,
)
from docvqa_site.submissions.models import Submission, SubmissionState
from docvqa_site.submissions.publication import follow_phases

# What a phase says, with its public names.
NAMES = {
    "name": "Name",
    "starts_at": "Begins",
    "ends_at": "Ends",
    "submissions_per_day": "Submissions per team in 24 hours",
    "results": "Results",
    "allows_private": "Unpublished submissions",
    "anonymity": "Names",
    "examined_ranks": "Ranks to examine",
    "examined_level": "Examination",
    "requires_counted": "Counted bytes only",
}
# How long before an earlier end teams learn of it without a public reason.
NOTICE = timedelta(days=1)
_SUBJECT = "{}: the phases have changed"
# What a phase says where bytes rank.
OF_BYTES = frozenset({"requires_counted"})
CHOICES: dict[str, dict[Any, str]] = {
    "results": {choice.value: str(choice.label) for choice in ResultsTiming},
    "anonymity": {choice.value: str(choice.label) for choice in Anonymity},
    "examined_level": dict(EXAMINED_LEVELS),
}


def names_of(track: Track) -> dict[str, str]:
    """Return what a phase of this track says, with the public names."""
    left_out = frozenset() if track.kind.rule.ranks_bytes else OF_BYTES
    return {name: shown for name, shown in NAMES.items() if name not in left_out}


def changes_of(before: Phase | None, edited: Phase) -> dict[str, tuple[Any, Any]]:
    """Return what would change of the stored phase, each with the old and the new value; of a new one, everything."""
    names = names_of(edited.track)
    values = {name: (getattr(before, name, None), getattr(edited, name)) for name in names}
    return {name: (old, new) for name, (old, new) in values.items() if before is None or old != new}


def preview_phase(before: Phase | None, edited: Phase, now: datetime) -> Preview:
    """Return what it would do to store the edited phase, in place of the one `before` or as a new one."""
    stored = list(edited.track.phases.all())
    phases = [*(phase for phase in stored if phase != before), edited]
    sentences = _track_sentences(edited.track, stored, phases, now)
    return Preview(
        phase_note(before, edited),
        [*_end_sentences(before, edited, now), *sentences, *_publication_sentences(before, edited, now)],
        notified=notified_sentence(edited.track),
        new_end=edited.ends_at if before and before.ends_at != edited.ends_at else None,
        is_short_notice=_is_short_notice(before, edited, now),
    )


def _is_short_notice(before: Phase | None, edited: Phase, now: datetime) -> bool:
    """Return whether a phase that hasn't ended would end earlier than it was to, and within `NOTICE`."""
    if before is None or before.has_ended(now) or edited.ends_at is None:
        return False
    is_earlier = before.ends_at is None or edited.ends_at < before.ends_at
    return is_earlier and edited.ends_at < now + NOTICE


def _end_sentences(before: Phase | None, edited: Phase, now: datetime) -> Iterable[str]:
    """Yield that an end that would be new has passed already."""
    if not edited.has_ended(now) or (before is not None and before.ends_at == edited.ends_at):
        return
    if before is None or before.has_ended(now):
        yield "The new end has already passed: the phase is over."
    else:
        yield (
            "The new end has already passed: the phase ends as soon as you confirm, and teams have no time left to "
            "submit."
        )


def removal_warning(phase: Phase, now: datetime) -> str:
    """Return what it would do to remove the phase; empty where it can't be."""
    if not _may_remove(phase):
        return ""
    stored = list(phase.track.phases.all())
    effect = _track_sentences(phase.track, stored, [one for one in stored if one != phase], now)
    return (
        f"The phase has no submissions. {' '.join(effect)} The removal will be listed publicly. "
        f"{notified_sentence(phase.track)}"
    )


def phase_note(before: Phase | None, edited: Phase) -> str:
    changes = changes_of(before, edited)
    if before is not None:
        shown = {name: (_named(name, old), _named(name, new)) for name, (old, new) in changes.items()}
        return f"Phase “{before.name}”: {note(shown, NAMES)}"
    values = [
        f"{NAMES[name]}: {in_words(_named(name, new))}."
        for name, (_, new) in changes.items()
        if name != "name"
    ]
    return f"Phase “{edited.name}” added. {' '.join(values)}"


@transaction.atomic
def save_phase(edited: Phase, reason: str, seen: str, *, actor: User, notifies: bool = True) -> bool:
    """Store a new or edited phase if that does what was seen; return whether it was stored.

    Args:
        notifies: Whether the track's teams are notified here, and not by the caller.
    """
    track, now = Track.objects.select_for_update().get(pk=edited.track_id), timezone.now()
    before = Phase.objects.filter(pk=edited.pk).first() if edited.pk else None
    others = track.phases.exclude(pk=edited.pk)
    edited.track = track
    shown = preview_phase(before, edited, now)
    if overlap([*others, edited]) or shown.digest != seen:
        return False
    changes = changes_of(before, edited)
    edited.save()
    edited.notices.update(shown_until=now)
    RuleChange.objects.create(track=track, text=shown.text, reason=reason)
    changed = {name: [_plain(old), _plain(new)] for name, (old, new) in changes.items()}
    action = "phase.changed" if before else "phase.added"
    record(actor, action, edited, track=track.slug, changes=changed, reason=reason)
    boards_changed(track.pk)
    if notifies:
        notify_of_change(track, Kind.DEADLINES, _SUBJECT.format(track), shown.text, reason)
    # The clock does it within a minute anyway.
    transaction.on_commit(follow_phases, robust=True)
    return True


@transaction.atomic
def remove_phase(phase: Phase, *, actor: User) -> bool:
    """Remove a phase in which nothing was submitted, unless it is the track's only one; return whether it was."""
    track = Track.objects.select_for_update().get(pk=phase.track_id)
    if not _may_remove(phase):
        return False
    text = f"Phase “{phase.name}” removed."
    RuleChange.objects.create(track=track, text=text)
    notify_of_change(track, Kind.DEADLINES, _SUBJECT.format(track), text, "")
    record(actor, "phase.removed", phase, track=track.slug, name=phase.name)
    phase.delete()
    boards_changed(track.pk)
    return True


def _may_remove(phase: Phase) -> bool:
    """Return whether the phase is empty, and not the only one of its track."""
    is_used = phase.submissions.exists() or phase.final_results.exists()
    return phase.track.phases.count() > 1 and not is_used


def _track_sentences(
    track: Track, before: Sequence[Phase], after: Sequence[Phase], now: datetime
) -> list[str]:
    """Return what it means for the track's teams that other phases follow each other."""
    closed = [closed_because(phases, now, paused=track.paused) for phases in (before, after)]
    ends = [phase.ends_at if (phase := phase_at(phases, now)) else None for phases in (before, after)]
    if closed == ["", ""] and ends[0] != ends[1]:
        sentences = [
            f"Teams can submit until {in_words(ends[1])}." if ends[1] else "Submitting has no deadline."
        ]
    else:
        sentences = opening_sentences(track, *closed)
    limits = _slots(before, now), _slots(after, now)
    if limits[0] != limits[1]:
        sentences += quota_sentences(recent_times(track, now), limits, now)
    return sentences


def _slots(phases: Sequence[Phase], now: datetime) -> int:
    phase = nearest_phase(phases, now)
    return phase.submissions_per_day if phase else 0


def _publication_sentences(before: Phase | None, edited: Phase, now: datetime) -> Iterable[str]:
    """Yield what the change means for what was submitted in the phase, and for drafts."""
    if edited.pk and edited.final_results.exists():
        yield "The final results of this phase are published and stay as they are."
    if edited.pk:
        yield from _submission_sentences(edited, now)
        yield from _examination_sentences(before, edited)
        yield from _counting_sentences(before, edited)
    if before and before.results == ResultsTiming.AT_ONCE and edited.results == ResultsTiming.AFTER_END:
        yield "Public submissions stay public; new ones become public when the phase ends."
    if edited.has_begun(now) and not edited.has_ended(now):
        drafts = Submission.objects.filter(track=edited.track, state=SubmissionState.DRAFT)
        private = 0 if edited.allows_private else drafts.filter(keep_private=True, practice=False).count()
        anonymous = 0 if edited.allows_anonymous else drafts.filter(anonymous=True, practice=False).count()
        if private:
            yield f"{private} draft{pluralize(private)} can't be kept unpublished in this phase."
        if anonymous:
            yield f"{anonymous} draft{pluralize(anonymous)} can't be submitted anonymously in this phase."


def _submission_sentences(edited: Phase, now: datetime) -> Iterable[str]:
    made = Submission.objects.filter(phase=edited, state=SubmissionState.SUBMITTED, practice=False)
    kept_back = made.filter(published_at__isnull=True, keep_private=False).count()
    private = made.filter(published_at__isnull=True, keep_private=True).count()
    anonymous = made.filter(anonymous=True).count()
    if kept_back and (edited.results == ResultsTiming.AT_ONCE or edited.has_ended(now)):
        yield f"{kept_back} submission{pluralize(kept_back)} become{pluralize(kept_back, 's,')} public at once."
    elif kept_back:
        yield f"{kept_back} submission{pluralize(kept_back)} wait{pluralize(kept_back, 's,')} for the end of the phase."
    if anonymous and edited.anonymity == Anonymity.UNTIL_END and edited.has_ended(now):
        yield f"The team{pluralize(anonymous)} of {anonymous} submission{pluralize(anonymous)} will be named at once."
    elif anonymous and edited.anonymity != Anonymity.UNTIL_END:
        yield f"{anonymous} submission{pluralize(anonymous)} stay{pluralize(anonymous, 's,')} anonymous until named."
    if private:
        yield f"{private} submission{pluralize(private)} wait{pluralize(private, 's,')} for the team to publish."


def _examination_sentences(before: Phase | None, edited: Phase) -> Iterable[str]:
    """Yield how many ranks would wait for an examination, where that changes."""
    counts = [
        _waiting_ranks(edited, phase.examined_ranks, phase.examined_level)
        for phase in (before, edited)
        if phase
    ]
    if len(set(counts)) > 1:
        ranks = f"{counts[-1] or 'No'} rank{pluralize(counts[-1] or 1)}"
        yield f"{ranks} would wait for an examination, compared with {counts[0] or 'none'} before."


def _counting_sentences(before: Phase | None, edited: Phase) -> Iterable[str]:
    """Yield what happens to ranks where the phase begins or ceases to rank counted bytes alone."""
    if before is None or before.requires_counted == edited.requires_counted or not edited.counting:
        return
    for board in boards_of(edited.track):
        entries = (
            replace(row.entry, requires_counted=edited.requires_counted)
            if row.entry.phase == before.name
            else row.entry
            for row in board.rows
        )
        after = rank(entries, edited.track.kind, edited.track.limits(board.budget))
        yield from board_sentences(effect(board.rows, after))


def _waiting_ranks(phase: Phase, first: int, level: int) -> int:
    """Return how many of the first ranks of the phase, on all boards, are of runs without the level."""
    boards = [first_of_phase(phase, budget, first) for budget in phase.track.run_budgets()] if first else []
    return sum(found < level for board in boards for _, found in board)


def _named(name: str, value: Any) -> object:
    return CHOICES[name].get(value, value) if name in CHOICES else value


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value
