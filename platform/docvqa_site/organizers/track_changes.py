"""Changes of a track's rules: what each would do, and making them, with a public note and an audit entry."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction
from django.template.defaultfilters import pluralize
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.audit.versions import boards_changed
from docvqa_site.boards.boards import boards_of, ranked_rows
from docvqa_site.boards.effects import Effect, effect, together
from docvqa_site.boards.models import newest_results
from docvqa_site.boards.ordering import counts
from docvqa_site.boards.ranking import rank
from docvqa_site.challenge.models import UNBOUND_LEVELS, RuleChange, Track
from docvqa_site.challenge.phases import closed_because
from docvqa_site.challenge.rankings import threshold_text
from docvqa_site.notifications.kinds import Kind
from docvqa_site.organizers import rule_changes
from docvqa_site.organizers.change_notifications import notified_sentence, notify_of_change
from docvqa_site.reviews.selectors import tallies_of
from docvqa_site.reviews.verdict import ResultStatus, status_of
from docvqa_site.submissions.models import Run, RunState, Submission, SubmissionState
from docvqa_site.submissions.quota import WINDOW, quota
from docvqa_site.ui.budgets import at_budget, budget_text

# What would change by its name, each with the old and the new value.
Changes = Mapping[str, tuple[Any, Any]]

# The rules by which boards rank and tracks open, with their public names.
BOARD_RULES = {
    "anls_threshold": "ANLS threshold",
    "required_reviews": "Accepting reviewers required for each proof",
    "unbound_level": "Unbound runs",
    "budgets": "Privacy budgets ε",
    "paused": "Paused",
}
# What gives and takes ranks; the number of reviews changes the status of results alone.
RANKS_RUNS = {"anls_threshold", "unbound_level", "budgets"}
DECIDES_RANKS = {*RANKS_RUNS, "required_reviews"}
LEVEL_NAMES = dict(UNBOUND_LEVELS)
# All that the desk changes of a track.
NAMES = {**BOARD_RULES, **rule_changes.NAMES}


@dataclass(frozen=True)
class Preview:
    """What a change would do: its public note, the effects in words, and that on all boards together.

    `difference` are the lines of texts that change. `notified` says who is notified of the change; it is empty where
    nobody is. `new_end` is when a phase ends that ended at another time; it `is_short_notice` where that is earlier,
    and soon.
    """

    text: str
    sentences: list[str] = field(default_factory=list)
    rows: Effect = field(default_factory=Effect)
    difference: str = ""
    notified: str = ""
    new_end: datetime | None = None
    is_short_notice: bool = False

    @property
    def needs_reason_because(self) -> str:
        """Why the change needs a public reason; empty where it needs none."""
        if self.rows.rows:
            return "Ranks change"
        return "Teams get less than a day's notice" if self.is_short_notice else ""

    @property
    def digest(self) -> str:
        """What a confirmation must carry: the change is made only if it still does what was shown."""
        ranks = [[str(row.entry.run), row.rank] for row in self.rows.rows]
        shown = json.dumps([self.text, self.sentences, ranks, self.difference])
        return hashlib.sha256(shown.encode()).hexdigest()


def changes_between(track: Track, values: Mapping[str, Any]) -> Changes:
    """Return the rules whose value would change, each with the old and the new value."""
    return {
        name: (getattr(track, name), value)
        for name, value in values.items()
        if name in NAMES and not _are_same(getattr(track, name), value)
    }


def _are_same(old: object, new: object) -> bool:
    """Return whether two values are the same. Browsers send texts with other ends of lines than files have."""
    return old == new or (
        isinstance(old, str) and isinstance(new, str) and old.splitlines() == new.splitlines()
    )


def preview(track: Track, changes: Changes, now: datetime) -> Preview:
    """Return what these changes of the track would do, computed by the rules that decide."""
    sentences: list[str] = []
    effects: dict[float | None, Effect] = {}
    changed = copy(track)
    for name, (_, new) in changes.items():
        setattr(changed, name, new)
    if "budgets" in changes:
        sentences += _budget_sentences(track, changed)
    if changes.keys() & RANKS_RUNS:
        effects = dict(_effects(track, changed))
        sentences += _rank_sentences(effects)
    if "required_reviews" in changes:
        sentences.append(_review_sentence(track, changes["required_reviews"]))
    if "paused" in changes:
        before, after = (closed_because(track.phases.all(), now, paused=value) for value in changes["paused"])
        sentences += opening_sentences(track, before, after)
    sentences += rule_changes.sentences(track, changes, now)
    sentences += _late_sentences(track, changes, now)
    sentences += _final_sentences(track, changes)
    # Texts alone decide nothing.
    notified = notified_sentence(track) if changes.keys() - rule_changes.TEXTS.keys() else ""
    difference = rule_changes.text_difference(changes)
    return Preview(_note(changes), sentences, together(effects.values()), difference, notified)


def _late_sentences(track: Track, changes: Changes, now: datetime) -> list[str]:
    """Return in which phases a change of what decides ranks comes after the deadline."""
    if not changes.keys() & DECIDES_RANKS:
        return []
    return [
        f"The phase “{phase}” is over: this changes what decides its ranks when no team can submit to it any more."
        for phase in track.phases.all()
        if phase.ends_at and phase.ends_at <= now
    ]


def _final_sentences(track: Track, changes: Changes) -> list[str]:
    """Return which final results the track's board may differ from once its rules have changed."""
    if not changes.keys() - rule_changes.TEXTS.keys():
        return []
    return [
        f"The final results of the phase “{results.phase}” are published and stay as they are, even where the board "
        "then shows other ranks."
        for results in newest_results().filter(phase__track=track)
    ]


def board_sentences(rows: Effect) -> list[str]:
    lost, gained, moved = rows.lost, rows.gained, rows.moved
    kinds = {
        f"lose{pluralize(lost, 's,')} {pluralize(lost, 'its,their')} rank": lost,
        f"get{pluralize(gained, 's,')} a rank": gained,
        f"change{pluralize(moved, 's,')} rank": moved,
    }
    found = [f"{len(some)} run{pluralize(some)} {words}." for words, some in kinds.items() if some]
    return found or ["No rank changes."]


def _rank_sentences(effects: Mapping[float | None, Effect]) -> list[str]:
    """Return what changes on each board on which any rank does."""
    found = [
        f"{at_budget(budget, '{}: ')}{sentence}"
        for budget, rows in effects.items()
        if rows.rows
        for sentence in board_sentences(rows)
    ]
    return found or board_sentences(Effect())


def _effects(track: Track, changed: Track) -> Iterable[tuple[float | None, Effect]]:
    """Yield what a change of the track does to each board, also to one that appears or is removed, with its budget."""
    for budget in dict.fromkeys([*track.run_budgets(), *changed.run_budgets()]):
        before = ranked_rows(track, budget)
        after = rank((row.entry for row in before), changed.kind, changed.limits(budget))
        yield budget, effect(before, after)


def _review_sentence(track: Track, required: tuple[int, int]) -> str:
    """Return how the status of results changes with the number of reviewers that they need."""
    submissions = {row.entry.submission for board in boards_of(track) for row in board.rows}
    tallies = tallies_of(Submission.objects.filter(pk__in=[key for key in submissions if key]))
    before, after = (
        {key for key, tally in tallies.items() if status_of(tally, number) is ResultStatus.VERIFIED}
        for number in required
    )
    if gained := len(after - before):
        proofs = f"The proof{pluralize(gained)} of {gained} method{pluralize(gained)}"
        return f"{proofs} become{pluralize(gained, 's,')} accepted."
    if lost := len(before - after):
        return f"{lost} method{pluralize(lost)} {pluralize(lost, 'is,are')} under review again."
    return "No method changes status."


def _budget_sentences(track: Track, changed: Track) -> list[str]:
    """Return which boards appear and disappear, with the runs on them, and which drafts are in the way."""
    old, new = track.budgets, changed.budgets
    found = []
    for budget in sorted(set(old) ^ set(new)):
        ranked, others = counts(track if budget in old else changed, budget)
        runs = f"{ranked + others or 'no'} run{pluralize(ranked + others)}"
        runs += f", {ranked} with a rank" if ranked else ""
        verb = "will be removed; its results are kept" if budget in old else "appears"
        found.append(f"The board at {budget_text(budget)} ({runs}) {verb}.")
    removed = Run.objects.filter(budget__in=set(old) - set(new), submission__track=track)
    if drafts := removed.filter(submission__state=SubmissionState.DRAFT).count():
        found.append(
            f"{drafts} run{pluralize(drafts)} of drafts must be removed before the drafts can be submitted."
        )
    if pending := removed.filter(state__in=[RunState.QUEUED, RunState.RUNNING], scored_at=None).count():
        found.append(f"{pending} run{pluralize(pending)} in evaluation won't appear on any board.")
    return found


def quota_sentences(times: Iterable[list[datetime]], limits: tuple[int, int], now: datetime) -> Iterable[str]:
    """Yield how many teams would have used up their quota, of the times of each team's submissions, if any has."""
    teams = list(times)
    before, after = (sum(not quota(team, now, limit).left for team in teams) for limit in limits)
    if before or after:
        used_up = f"{after or 'No'} team{pluralize(after or 1)} would be out of submissions now"
        yield f"{used_up}, compared with {before or 'none'} before."


def note(changes: Changes, names: Mapping[str, str]) -> str:
    """Return the public note about the changes of what has these names."""
    return " ".join(
        f"{names[name]}: {in_words(old)} → {in_words(new)}." for name, (old, new) in changes.items()
    )


def _note(changes: Mapping[str, tuple[Any, Any]]) -> str:
    """Return the public note about changes of a track."""
    texts = [
        rule_changes.text_note(name, *values)
        for name, values in changes.items()
        if name in rule_changes.TEXTS
    ]
    values = {
        name: (_named(name, old), _named(name, new))
        for name, (old, new) in changes.items()
        if name not in rule_changes.TEXTS
    }
    return " ".join(filter(None, [*texts, note(values, NAMES)]))


def _named(name: str, value: Any) -> object:
    return LEVEL_NAMES[value] if name == "unbound_level" else rule_changes.named(name, value)


@transaction.atomic
def change_track(track: Track, values: Mapping[str, Any], reason: str, seen: str, *, actor: User) -> bool:
    """Make the changes if they do what was seen; return whether they were made."""
    current = Track.objects.select_for_update().get(pk=track.pk)
    changes = changes_between(current, values)
    shown = preview(current, changes, timezone.now())
    if not changes or shown.digest != seen:
        return False
    for name, (_, new) in changes.items():
        setattr(current, name, new)
    current.save(update_fields=list(changes))
    RuleChange.objects.create(track=current, text=shown.text, difference=shown.difference, reason=reason)
    values_changed = {name: [old, new] for name, (old, new) in changes.items()}
    record(actor, "track.changed", current, changes=values_changed, reason=reason)
    boards_changed(current.pk)
    if shown.notified:
        subject = f"{current}: the rules have changed"
        lost = [row.entry.run for row in shown.rows.lost]
        notify_of_change(current, Kind.ANNOUNCEMENTS, subject, shown.text, reason, lost=lost)
    return True


def recent_times(track: Track, now: datetime) -> list[list[datetime]]:
    """Return when each team has submitted lately, as far as it counts against its quota."""
    counted = Submission.objects.filter(track=track, submitted_at__gt=now - WINDOW, refunded_at=None)
    times: dict[int, list[datetime]] = defaultdict(list)
    for team, moment in counted.values_list("team", "submitted_at"):
        if moment is not None:
            times[team].append(moment)
    return list(times.values())


def opening_sentences(track: Track, before: str, after: str) -> list[str]:
    """Return what it means for the track's teams that it was closed for one reason and will be for another."""
    if before == after:
        return ["This doesn't change whether teams can submit."]
    if not after:
        return ["Teams can submit again."]
    drafts = Submission.objects.filter(track=track, state=SubmissionState.DRAFT).count()
    waiting = f" {drafts} draft{pluralize(drafts)} can't be submitted until it opens." if drafts else ""
    return [f"Teams can't submit now: {after}{waiting}"]


def in_words(value: object) -> str:
    """Return a value as a public note has it."""
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case datetime():
            return f"{value:%b} {value.day}, {value:%Y, %H:%M} UTC"
        # Of what is changed here, a threshold alone is a number with decimals.
        case float():
            return threshold_text(value)
        case list():
            return ", ".join(f"{number:g}" for number in value)
        case _:
            return f"{value}"
