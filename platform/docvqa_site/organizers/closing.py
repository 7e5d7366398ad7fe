"""Closing a phase: what must hold before, and freezing, publishing and announcing its results when it does.

The desk and `manage.py close_phase` both end here. What is published is never changed: a correction is another set of
final results of the same phase, and the page of the earlier one links to it.
"""

import gzip
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import AuditEntry, record
from docvqa_site.audit.versions import boards_changed, boards_versions
from docvqa_site.boards.boards import selected_rows, stored_boards
from docvqa_site.boards.earlier_rules import earlier_rules
from docvqa_site.boards.models import FinalResults, FrozenFile
from docvqa_site.boards.ranking import Row
from docvqa_site.boards.required_examinations import missing_examinations
from docvqa_site.boards.selection import Selection
from docvqa_site.boards.snapshots import Edition, sha256, snapshot_files
from docvqa_site.challenge.models import Phase, RuleChange, Track
from docvqa_site.challenge.rankings import threshold_text
from docvqa_site.evaluation.models import ACTIVE_EXAMINATIONS, Examination, ScoredPart
from docvqa_site.evaluation.test_sets.parts import scored_part
from docvqa_site.news.models import NewsItem
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.organizers.outages import downtime_of
from docvqa_site.reviews.run_appeals import appealable
from docvqa_site.reviews.selectors import undecided
from docvqa_site.submissions.deadline_reminders import participants
from docvqa_site.submissions.models import Run, RunState, Submission, SubmissionState
from docvqa_site.submissions.publication import kept_back
from docvqa_site.ui.budgets import at_budget
from docvqa_site.ui.plain_text import plain_text

# The ranks of each board that the page of the results shows.
SHOWN_RANKS = 10
# Those without a rank that organizers see before they close the phase.
SHOWN_UNRANKED = 50
MOST_LISTED = 20
# Whose run was disqualified before has had the time to appeal.
APPEAL_TIME = timedelta(days=14)


@dataclass(frozen=True)
class Obstacle:
    """What is in the way of a condition, with the page where it is dealt with."""

    text: str
    url: str


@dataclass(frozen=True)
class Condition:
    """What must hold before a phase is closed. It is met if nothing is in the way; at most `MOST_LISTED` is listed."""

    text: str
    obstacles: Sequence[Obstacle]
    count: int

    @property
    def is_met(self) -> bool:
        return not self.count

    @property
    def unlisted(self) -> int:
        return self.count - len(self.obstacles)


@dataclass(frozen=True)
class Publication:
    """What the results are published as: their part of the address, their title, and a text that announces them.

    The text of a correction is its reason, which its page and files state as well.
    """

    slug: str
    title: str
    text: str = ""


@dataclass(frozen=True)
class Announcement:
    """What announces results: a lead and the organizers' text on News, where it is Markdown, and by email."""

    lead: str
    text: str
    address: str

    @property
    def news(self) -> str:
        link = f"[Standings, files and how to cite them]({self.address})"
        return "\n\n".join(filter(None, [self.lead, self.text, link]))

    @property
    def paragraphs(self) -> list[str]:
        return [*filter(None, [self.lead, plain_text(self.text)]), self.address]


class NotReadyError(Exception):
    """A condition isn't met any more, or the boards have changed since they were seen."""


def conditions(phase: Phase, now: datetime) -> list[Condition]:
    """Return what must hold before the phase is closed, with what is in the way of each."""
    made = Submission.objects.filter(phase=phase, state=SubmissionState.SUBMITTED)
    runs = Run.objects.filter(submission__in=made).select_related("submission__team").order_by("pk")
    examined = Examination.objects.filter(run__in=runs, state__in=ACTIVE_EXAMINATIONS)
    return [
        _condition("The phase has ended", _open_end(phase, now)),
        _condition(
            "All results are public (the clock publishes them within a minute)",
            (Obstacle(str(one), one.get_absolute_url()) for one in kept_back(now).filter(phase=phase)),
        ),
        _of_runs("No run is being evaluated", runs.filter(state__in=[RunState.QUEUED, RunState.RUNNING])),
        _of_runs("No run has failed because of a site error", runs.filter(state=RunState.FAILED)),
        _of_runs("No examination is waiting or running", runs.filter(examinations__in=examined)),
        _condition("All proof reviews are settled", _open_reviews(made)),
        _condition(
            "The top ranks have passed the required examinations"
            if phase.examined_ranks
            else "No examinations are required",
            _missing_levels(phase),
        ),
    ]


def is_ready(found: Iterable[Condition]) -> bool:
    return all(condition.is_met for condition in found)


def version_of(phase: Phase) -> str:
    """Return what a confirmation must carry: the version of the boards whose standings were seen."""
    return boards_versions([phase.track_id])[phase.track_id]


def standings(phase: Phase, length: int = SHOWN_RANKS) -> list[dict[str, object]]:
    """Return the first ranks of each board among what was submitted in the phase, as values of JSON."""
    boards = stored_boards(phase.track)
    earlier = {one.row.entry.run: str(one) for one in earlier_rules(phase.track, phase.name)}
    found = selected_rows(Selection(phase=phase.name), boards, length)
    ranks_bytes = phase.track.kind.rule.ranks_bytes
    threshold = {"threshold": threshold_text(phase.track.anls_threshold)} if ranks_bytes else {}
    return [
        {
            "board": at_budget(board.budget, "ε = {}", "{:g}".format),
            **threshold,
            "rows": [
                {**_standing(rank, row), "earlier_rules": earlier.get(row.entry.run, "")}
                for rank, row in enumerate(filter(_is_ranked, rows), 1)
            ],
        }
        for board, rows in zip(boards, found, strict=True)
    ]


def baselines(standings: Iterable[Mapping[str, Any]]) -> int:
    """Return how many of the ranks the organizers' baselines hold."""
    return sum(row["is_baseline"] for board in standings for row in board["rows"])


def unranked(phase: Phase) -> list[dict[str, object]]:
    """Return the first rows without a rank of each board that has any: the files have them, and the reason."""
    selection = Selection(phase=phase.name)
    boards = [
        {
            "board": at_budget(board.budget, "ε = {}", "{:g}".format),
            "rows": board.unranked(selection, 0, SHOWN_UNRANKED),
            "more": max(0, board.counts(selection)[1] - SHOWN_UNRANKED),
        }
        for board in stored_boards(phase.track)
    ]
    return [board for board in boards if board["rows"]]


def warnings(phase: Phase, now: datetime) -> Iterator[str]:
    """Yield what organizers may want to do first."""
    if scored_part(phase.track) is ScoredPart.PUBLIC:
        yield (
            "Scores are based on the public part of the test set. To publish final results on the private part, "
            "reveal it first."
        )
    if fresh := _lately_disqualified(phase, now):
        yield (
            f"Disqualified in the last {APPEAL_TIME.days} days, and the team may still appeal: {', '.join(fresh)}. "
            "You may want to wait before you publish the results."
        )
    if changed := earlier_rules(phase.track, phase.name):
        count = len(changed)
        yield (
            f"{count} ranked {'run was' if count == 1 else 'runs were'} judged under rules that have changed since. "
            "The results say so."
        )
    downtime = downtime_of(phase, now)
    if downtime.needs_organizer and not phase.final_results.exists():
        yield (
            f"The phase lost {downtime.owed_words} to outages. To make up for this, extend it before you close it: "
            "see “Outages and maintenance”."
        )


@transaction.atomic
def close_phase(phase: Phase, publication: Publication, *, seen: str, actor: User | None) -> FinalResults:
    """Freeze the results of a phase, publish them at their address, and announce them.

    Raises:
        NotReadyError: A condition isn't met, or the boards aren't those of the version `seen`.
    """
    track, now = Track.objects.select_for_update().get(pk=phase.track_id), timezone.now()
    if version_of(phase) != seen or not is_ready(conditions(phase, now)):
        raise NotReadyError
    results = FinalResults.objects.create(
        slug=publication.slug,
        title=publication.title,
        phase=phase,
        made_at=now,
        standings=standings(phase),
    )
    address = settings.SITE_URL + results.get_absolute_url()
    earlier = results.corrected
    corrects = settings.SITE_URL + earlier.get_absolute_url() if earlier else ""
    reason = publication.text if earlier else ""
    edition = Edition(results.slug, results.title, now, address, corrects, reason)
    files = snapshot_files([track], edition, phase.name)
    FrozenFile.objects.bulk_create(
        FrozenFile(
            results=results,
            name=name,
            sha256=sha256(content),
            size_bytes=len(content),
            compressed=gzip.compress(content, mtime=0),
        )
        for name, content in files.items()
    )
    phase.notices.update(shown_until=now)
    # They link to the results.
    boards_changed(track.pk)
    done = f"final results corrected (earlier: “{earlier}”)" if earlier else "closed"
    RuleChange.objects.create(
        track=track, text=f"Phase “{phase.name}” {done}: “{results.title}” is published at {address}."
    )
    correction = {"corrects": earlier.slug, "reason": reason} if earlier else {}
    record(
        actor,
        "phase.closed",
        phase,
        track=track.slug,
        results=results.slug,
        **correction,
        sha256=_hashes(files),
    )
    _announce(results, announcement_of(phase, publication, earlier))
    return results


def announcement_of(phase: Phase, publication: Publication, earlier: FinalResults | None) -> Announcement:
    """Return what announces the results of the phase, or that they replace the `earlier` ones."""
    lead = f"The results of the phase “{phase}” of {phase.track} are final."
    if earlier:
        lead = (
            f"The final results of the phase “{phase}” of {phase.track} have been corrected. "
            f"They replace “{earlier}” of {earlier.made_at:%b %-d, %Y}. Reason:"
        )
    address = settings.SITE_URL + FinalResults(slug=publication.slug).get_absolute_url()
    return Announcement(lead, publication.text, address)


def _announce(results: FinalResults, announcement: Announcement) -> None:
    """Publish the results among the news, and notify everybody who takes part in the track."""
    NewsItem.objects.create(
        title=results.title,
        slug=f"results-{results.slug}",
        text=announcement.news,
        published_at=results.made_at,
    )
    people = participants(results.phase.track)
    notify(people, Kind.RESULTS, results.title, announcement.paragraphs)


def _hashes(files: dict[str, bytes]) -> dict[str, str]:
    return {name: sha256(content) for name, content in sorted(files.items())}


def _condition(text: str, obstacles: Iterable[Obstacle]) -> Condition:
    found = list(obstacles)
    return Condition(text, found[:MOST_LISTED], len(found))


def _of_runs(text: str, runs: QuerySet[Run]) -> Condition:
    listed = [
        Obstacle(f"{run} of {run.submission.team}", reverse("organizers:run", args=[run.pk]))
        for run in runs.defer("results", "pending", "rules")[:MOST_LISTED]
    ]
    return Condition(text, listed, runs.count())


def _lately_disqualified(phase: Phase, now: datetime) -> list[str]:
    """Return the runs that were disqualified lately and whose teams haven't appealed, each with its team."""
    of_phase = appealable(Run.objects.filter(submission__phase=phase)).select_related("submission__team")
    out = {str(run.pk): run for run in of_phase.defer("results", "pending", "rules").order_by("pk")}
    lately = AuditEntry.objects.filter(
        action="run.disqualified", object_id__in=out, at__gt=now - APPEAL_TIME
    ).values_list("object_id", flat=True)
    recent = set(lately)
    return [f"{run} of {run.submission.team}" for key, run in out.items() if key in recent]


def _open_end(phase: Phase, now: datetime) -> Iterator[Obstacle]:
    if not phase.has_ended(now):
        ends = (
            f"The phase ends on {phase.ends_at:%b %-d, %Y, %H:%M} UTC."
            if phase.ends_at
            else "The phase has no end date."
        )
        yield Obstacle(ends, reverse("organizers:phase", args=[phase.track.slug, phase.pk]))


def _open_reviews(made: QuerySet[Submission]) -> Iterator[Obstacle]:
    for submission in undecided(made).select_related("team"):
        yield Obstacle(f"{submission} of {submission.team}", submission.get_absolute_url())


def _missing_levels(phase: Phase) -> Iterator[Obstacle]:
    for missing in missing_examinations([phase.track], phase.name):
        text = f"{missing.run}, rank {missing.rank}: {missing.level.examination}, {missing.state}"
        yield Obstacle(text, reverse("organizers:run", args=[missing.run.pk]))


def _is_ranked(row: Row) -> bool:
    return row.rank is not None


def _standing(rank: int, row: Row) -> dict[str, object]:
    entry, results = row.entry, row.entry.results
    return {
        "rank": rank,
        "method": entry.method,
        "team": entry.team,
        "url": entry.url,
        "anls": results.anls,
        "decimals": results.decimals,
        "bytes_total": results.bytes_total,
        "counting": results.counting_label,
        "level": "" if results.trust_level is None else results.trust_label,
        "epsilon": results.epsilon,
        "status": entry.status.label,
        "is_baseline": entry.is_baseline,
    }
