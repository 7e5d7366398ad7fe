"""Which phase of a track runs, and whether the track takes submissions."""

from datetime import UTC, datetime, timedelta

import pytest

from docvqa_site.challenge.models import Phase
from docvqa_site.challenge.phases import closed_because, nearest_phase, overlap, phase_at

NOW = datetime(2030, 1, 5, 9, 7, tzinfo=UTC)
HOUR = timedelta(hours=1)
OPEN = Phase(name="open")
PAST = Phase(name="past", ends_at=NOW)
NEXT = Phase(name="next", starts_at=NOW + HOUR)
FINAL = Phase(name="final", starts_at=NOW + 2 * HOUR)


@pytest.mark.parametrize(
    ("phases", "paused", "reason"),
    [
        ([OPEN], False, ""),
        ([OPEN], True, "Paused by the organizers."),
        ([Phase(starts_at=NOW)], False, ""),
        ([NEXT], False, "Opens on Jan 5, 2030, 10:07 UTC."),
        ([PAST, NEXT], False, "Opens on Jan 5, 2030, 10:07 UTC."),
        ([Phase(ends_at=NOW + HOUR)], False, ""),
        ([PAST], False, "The deadline was Jan 5, 2030, 09:07 UTC."),
        ([], False, "No phase is scheduled yet."),
    ],
)
def test_a_track_says_why_it_takes_nothing(phases: list[Phase], paused: bool, reason: str) -> None:
    assert closed_because(phases, NOW, paused=paused) == reason


def test_the_phase_that_runs_is_found_whatever_the_order() -> None:
    running = Phase(name="running", starts_at=NOW, ends_at=NOW + HOUR)
    assert phase_at([FINAL, running, PAST], NOW) is running
    assert phase_at([FINAL, PAST], NOW) is None


@pytest.mark.parametrize(
    ("phases", "nearest"), [([FINAL, NEXT, PAST], NEXT), ([PAST], PAST), ([OPEN], OPEN), ([], None)]
)
def test_the_nearest_phase_is_this_one_the_next_or_the_last(
    phases: list[Phase], nearest: Phase | None
) -> None:
    assert nearest_phase(phases, NOW) is nearest


@pytest.mark.parametrize(
    ("phases", "is_sound"),
    [
        ([PAST, NEXT], True),
        ([Phase(starts_at=NOW), PAST], True),
        ([OPEN, NEXT], False),
        ([PAST, Phase(starts_at=NOW - HOUR)], False),
        ([PAST, Phase(ends_at=NOW - HOUR)], False),
        ([NEXT, FINAL], False),
    ],
)
def test_phases_do_not_overlap(phases: list[Phase], is_sound: bool) -> None:
    assert (overlap(phases) == "") is is_sound
