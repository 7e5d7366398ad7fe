"""The rows of the reviewers' queue as HTML: for speed without templates, as `docvqa_site.boards.rows`."""

from collections.abc import Iterable
from datetime import date

from django.template.defaultfilters import pluralize
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from docvqa_site.reviews.queue import QueueEntry
from docvqa_site.submissions.selectors import submission_addresses
from docvqa_site.ui.markup import markup
from docvqa_site.ui.templatetags.ui import ago, on

NOBODY = SafeString('<span class="muted">nobody</span>')
HIDDEN = SafeString('<span class="muted">shown after your decision</span>')
NO_FLAG = SafeString("none")
NOTHING = SafeString('<span class="muted">none yet</span>')
EMPTY = SafeString("")
ANOTHER = SafeString(' <span class="badge">another reviewer is needed</span>')
APPEALED = SafeString(' <span class="badge">appeal open</span>')
ASSIGN = ' <a class="small" href="{}">Assign<span class="visually-hidden"> reviewers to {}</span></a>'
# What each cell has; a second value is a note on the first one.
CELLS = {
    "Team": "{}",
    "Track": "{}",
    "Submitted": "{}{}",
    "Reviewers": "{}{}",
    "Your decision": "{}{}",
    "Flags": "{}",
    "Verdict": "{}{}",
}
TDS = "".join(f'<td data-label="{label}">{values}</td>' for label, values in CELLS.items())
ROW = f'<tr><th scope="row"><a href="{{}}">{{}}</a></th>{TDS}</tr>\n'


def queue_rows(entries: Iterable[QueueEntry], *, may_assign: bool) -> SafeString:
    """Return the rows of a part of the queue; whoever `may_assign` reviewers finds a link to that."""
    listed = list(entries)
    desks = submission_addresses([entry.submission.pk for entry in listed], "reviews:desk")
    undecided = [entry.submission.pk for entry in listed if may_assign]
    assigns = submission_addresses(undecided, "reviews:assign")
    return SafeString(
        "".join(
            _row(entry, desks[entry.submission.pk], assigns.get(entry.submission.pk, "")) for entry in listed
        )
    )


def _row(entry: QueueEntry, desk: str, assign: str) -> SafeString:
    submission, appeal = entry.submission, APPEALED if entry.is_appealed else EMPTY
    return markup(
        ROW,
        desk,
        submission,
        submission.team,
        submission.track,
        ago(submission.submitted_at),
        _revision(entry),
        ", ".join(entry.reviewers) or NOBODY,
        markup(ASSIGN, assign, submission) if assign else EMPTY,
        entry.own or NOTHING,
        _due(entry.due),
        _flags(entry),
        _reviews(entry),
        SafeString(_opinion(entry) + _note("revision due", entry.changes_due) + appeal),
    )


def _note(words: str, day: date | None) -> SafeString:
    if day is None:
        return EMPTY
    return markup(' <span class="muted small">({} {})</span>', words, f"{day:%b} {day.day}, {day:%Y}")


def _revision(entry: QueueEntry) -> SafeString:
    """Return which version of the proof it is, and when the team sent it, once there are several."""
    if entry.revision is None:
        return EMPTY
    sent = on(entry.revision.created_at)
    return markup(' <span class="muted small">(version {}, sent {})</span>', entry.revision.version, sent)


def _due(day: date | None) -> SafeString:
    """Return the day by which the reviewer was asked to decide, with the days left."""
    if day is None:
        return EMPTY
    left = (day - timezone.now().date()).days
    words = "overdue since" if left < 0 else f"{left} day{'' if left == 1 else 's'} left, due"
    return _note(words, day)


def _opinion(entry: QueueEntry) -> SafeString:
    """Return that another reviewer is needed, where the verdict doesn't say so, and by when."""
    needed = ANOTHER if entry.needs_another and not entry.shows_verdict else EMPTY
    return SafeString(needed + _note("by", entry.opinion_due))


def _flags(entry: QueueEntry) -> SafeString:
    """Return how many checks are flagged, and how many files that the proof cites aren't the kit's."""
    counts = (
        (entry.flagged, f"flagged check{pluralize(entry.flagged)}"),
        (entry.different, f"file{pluralize(entry.different)} not the kit's"),
    )
    badges = [
        markup('<span class="badge badge-flagged">{} {}</span>', count, words)
        for count, words in counts
        if count
    ]
    return SafeString(" ".join(badges)) or NO_FLAG


def _reviews(entry: QueueEntry) -> str:
    if entry.shows_verdict:
        return capfirst(entry.verdict.reason)
    # That a proof waits for its team tells this anyway.
    return "Changes requested" if entry.verdict.asks_changes else HIDDEN
