"""Checks that passed with hardly any power, by what they say themselves."""

from pathlib import Path

import pytest

from docvqa_site.evaluation.display.power import STATED, has_hardly_any_power
from docvqa_site.evaluation.display.results import tally
from evaluator.messages.jobs import Check, CheckStatus
from tests.evaluator.records.checked import checks
from tests.evaluator.records.factories import make_record

REUSE = "12 rounds; would have detected the reuse or cancellation of {}% of a round's noise in a later round"


def passed(name: str, found: str) -> Check:
    return Check(id=name, status=CheckStatus.PASSED, found=found)


@pytest.mark.parametrize(
    ("name", "found", "is_weak"),
    [
        ("record.noise_reuse", REUSE.format("98.9"), True),
        ("record.noise_reuse", REUSE.format(90), True),
        ("record.noise_reuse", REUSE.format("89.9"), False),
        ("record.noise_size", "would have detected noise below 54.9% of the declared level", True),
        ("record.noise_size", "would have detected noise below 87.9% of the declared level", False),
        ("record.noise_shape", "would have detected missing noise in one coordinate in 2", True),
        ("record.noise_shape", "would have detected missing noise in one coordinate in 20", False),
        ("record.linkage", REUSE.format(99), False),
        ("record.noise_reuse", "nothing", False),
    ],
)
def test_a_check_near_its_limit_has_hardly_any_power(name: str, found: str, is_weak: bool) -> None:
    assert has_hardly_any_power(passed(name, found)) is is_weak
    assert not has_hardly_any_power(Check(id=name, status=CheckStatus.FLAGGED, found=found))


def test_the_numbers_are_found_in_what_the_checks_say(tmp_path: Path) -> None:
    made = checks(make_record(tmp_path, rounds=4))
    assert all(stated.words.search(made[name].found) for name, stated in STATED.items())


def test_the_tally_says_how_many_of_those_that_passed_are_weak() -> None:
    found = [passed("record.noise_reuse", REUSE.format(99)), passed("record.linkage", "")]
    assert tally(found) == "2 passed (1 with hardly any power)"
