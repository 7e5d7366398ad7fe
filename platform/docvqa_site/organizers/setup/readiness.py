"""Whether a draft is ready: what participants, workers and reviewers need, each item with the step that sets it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.template.defaultfilters import pluralize
from django.utils.text import get_text_list

from docvqa_site.challenge.models import Phase, Track
from docvqa_site.challenge.phases import closed_because, nearest_phase, overlap
from docvqa_site.challenge.references import tensors_matching
from docvqa_site.downloads.commands import missing_files
from docvqa_site.downloads.kit import find_wheel
from docvqa_site.downloads.models import Download, DownloadKind
from docvqa_site.evaluation.inventories import Holding, Stock, stock
from docvqa_site.evaluation.models import TestSet
from docvqa_site.evaluation.rehearsal import problem_of, rehearsal_of
from docvqa_site.organizers.track_changes import in_words
from docvqa_site.reviews.selectors import reviewers
from evaluator.messages.jobs import Step

SHORT_HASH = 12
RECOMMENDED = "recommended"


@dataclass(frozen=True)
class Item:
    """Something that a track needs: `found` says what there is, or what is missing.

    `step` is the step of the setup that sets it, empty for the test. What isn't `is_required` doesn't keep a draft
    from being published, and is called `lacking` where it isn't there.
    """

    name: str
    found: str
    step: str
    is_there: bool
    is_required: bool = True
    lacking: str = RECOMMENDED


@dataclass(frozen=True)
class Readiness:
    items: Sequence[Item]

    @property
    def missing(self) -> list[Item]:
        return [item for item in self.items if item.is_required and not item.is_there]

    @property
    def is_ready(self) -> bool:
        return not self.missing

    @property
    def in_the_way_of_a_test(self) -> list[Item]:
        """What the test needs and isn't there."""
        return [item for item in self.missing if item.step in {"weights", "phases"}]


def readiness(track: Track, now: datetime) -> Readiness:
    held = stock()
    test = problem_of(track, rehearsal_of(track))
    return Readiness(
        [
            _texts(track),
            *folders(track, held),
            *_trainable(track),
            *_leakage_set(track, held),
            _downloads(track),
            _phases(track, now),
            *_reviewers(track),
            Item("Test", test or f"The base weights passed {_steps_of(track)}.", "", not test),
            *_untried(track),
        ]
    )


def _steps_of(track: Track) -> str:
    """Return the steps that the test of the track takes, as a list in words."""
    *others, last = [*track.rules(None).steps(), *([Step.LEAKAGE] if track.leakage_set else [])]
    return f"{', '.join(others)} and {last}"


def _untried(track: Track) -> Iterator[Item]:
    if track.kind.is_accounted:
        text = (
            "The test doesn't recompute ε, because base weights have no training record. After publishing, train a "
            "short private run and submit it with “pfl submit --practice”: it takes this step and is never ranked."
        )
        yield Item("Accounting", text, "", False, is_required=False, lacking="not tested")


def folders(track: Track, held: Stock) -> Iterator[Item]:
    """Yield the track's base weights and its test set, as the workers have them."""
    yield _held("Base weights", track.reference, held.references)
    found = held.test_sets.get(track.test_set)
    known = TestSet.objects.filter(name=track.test_set).first()
    if known and found and found.sha256 and found.sha256 != known.sha256:
        text = (
            f"{track.test_set}: runs were scored on a test set of this name with another SHA-256. Rename it."
        )
        yield Item("Test set", text, "weights", False)
    else:
        yield _held("Test set", track.test_set, held.test_sets)


def _leakage_set(track: Track, held: Stock) -> Iterator[Item]:
    if chosen := track.measured_leakage_set():
        name = f"{chosen.folder}/{chosen.split}"
        yield _held("Leakage set", name, held.leakage_sets)


def _trainable(track: Track) -> Iterator[Item]:
    """Yield what the patterns of trainable tensors match, if there are any."""
    patterns = track.trainable_patterns()
    if not patterns:
        return
    matched = tensors_matching(track.reference, patterns)
    if matched is None:
        text = f"The site doesn't have {track.reference or 'the base weights'}, so it can't say which tensors match."
        yield Item("Trainable parameters", text, "weights", False, is_required=False, lacking="not checked")
        return
    text = "; ".join(f"{pattern} matches {_tensors(count)}" for pattern, count in matched.items())
    yield Item("Trainable parameters", f"{text}.", "weights", all(matched.values()))


def _tensors(count: int) -> str:
    return f"{count:,} tensor{pluralize(count)}" if count else "no tensor"


def _held(name: str, folder: str, holdings: Mapping[str, Holding]) -> Item:
    if not folder:
        found = "Not chosen." if holdings else "Not chosen; no worker reports any."
        return Item(name, found, "weights", False)
    held = holdings.get(folder)
    if held is None:
        return Item(name, f"No worker has {folder}.", "weights", False)
    if held.sha256 is None:
        return Item(name, f"Workers have different files under the name {folder}.", "weights", False)
    text = f"{folder}, {held.where}, SHA-256 {held.sha256[:SHORT_HASH]}…"
    return Item(name, text, "weights", True)


def _texts(track: Track) -> Item:
    missing = [name for name in ("summary", "description") if not getattr(track, name).strip()]
    if missing:
        return Item("Texts", f"Missing: {' and '.join(missing)}.", "texts", False)
    # Browsers send texts with other ends of lines than files have.
    words = track.description.split()
    others = Track.objects.exclude(ranking=track.ranking)
    if source := next((other for other in others if other.description.split() == words), None):
        found = f"The rules text is that of {source}, a track of another kind."
        return Item("Texts", found, "texts", False, is_required=False)
    return Item("Texts", "Written.", "texts", True)


def _downloads(track: Track) -> Item:
    downloads = Download.objects.for_track(track)
    common = downloads.filter(tracks__isnull=True).count()
    missing = [kind.label.lower() for kind in missing_files(track)]
    if not find_wheel(downloads) and not settings.SOURCE_URL:
        missing.append(DownloadKind.KIT.label.lower())
    found = f"{len(downloads) - common} for this track, {common} for all tracks."
    if missing:
        found += f" Missing: {get_text_list(missing, 'and')}."
    return Item("Downloads", found, "data", not missing, is_required=False)


def _phases(track: Track, now: datetime) -> Item:
    phases = list(track.phases.all())
    nearest = nearest_phase(phases, now)
    if problem := overlap(phases):
        return Item("Phases", problem, "phases", False)
    is_over = nearest is None or nearest.has_ended(now)
    opening = closed_because(phases, now) or "Open as soon as the track is published."
    shown = " ".join(f"{_phase(phase)}." for phase in phases)
    return Item("Phases", f"{shown} {opening}", "phases", not is_over)


def _phase(phase: Phase) -> str:
    """Return what publication makes public of a phase: its times, its quota, and the examinations that it requires."""
    facts = [
        f"from {in_words(phase.starts_at)}" if phase.starts_at else "",
        f"until {in_words(phase.ends_at)}" if phase.ends_at else "no deadline",
        f"{phase.submissions_per_day} submission{pluralize(phase.submissions_per_day)} per team in 24 hours",
        phase.required_examination or "no examination required",
    ]
    return f"“{phase}”: {', '.join(filter(None, facts))}"


def _reviewers(track: Track) -> Iterator[Item]:
    needed = track.reviews_needed
    if needed is not None:
        found = reviewers(include_superusers=False).count()
        text = f"{found} of {needed} required to verify a result. Superusers can review proofs, too."
        yield Item("Reviewers", text, "people", found >= needed, is_required=False)
