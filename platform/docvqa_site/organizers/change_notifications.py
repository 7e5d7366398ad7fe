"""Who is notified of a change of a track's rules or phases, and the notifications."""

from collections import defaultdict
from collections.abc import Collection
from uuid import UUID

from django.conf import settings
from django.template.defaultfilters import pluralize

from docvqa_site.challenge.models import Track
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.submissions.deadline_reminders import participants
from docvqa_site.submissions.models import Run


def notified_sentence(track: Track) -> str:
    """Return who will be notified of a change, for its preview."""
    people = participants(track).count()
    if not people:
        return (
            "Nobody is notified: no team has registered for this track, or has a draft or submission in it."
        )
    verb = pluralize(people, "is,are")
    return (
        f"{people} {pluralize(people, 'person,people')} whose team has registered for this track, or has a draft or "
        f"submission in it, {verb} notified, on the site and by email."
    )


def notify_of_change(
    track: Track, kind: Kind, subject: str, text: str, reason: str, *, lost: Collection[UUID] = ()
) -> None:
    """Notify the members of the track's teams, and those whose runs lose their rank of these runs as well.

    Args:
        lost: The runs that lose their rank.
    """
    paragraph, page = f"{text} {reason}".strip(), settings.SITE_URL + track.get_absolute_url()
    runs: dict[int, list[str]] = defaultdict(list)
    for run in Run.objects.filter(pk__in=lost).select_related("submission").order_by("pk"):
        runs[run.submission.team_id].append(str(run))
    people = participants(track)
    for team, names in runs.items():
        loses = f"Because of this change, these runs of your team lose their ranks: {'; '.join(names)}."
        members = people.filter(membership__team=team)
        subject_of_loss = f"{track}: your team loses a rank"
        notify(members, Kind.RESULTS, subject_of_loss, [paragraph, loses, page], is_official=True)
    others = people.exclude(membership__team__in=runs)
    notify(others, kind, subject, [paragraph, page], is_official=True)
