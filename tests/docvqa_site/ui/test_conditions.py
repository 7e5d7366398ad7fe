"""A condition says the same in memory as in the database."""

from itertools import product

import pytest
from django.db.models import F, Q

from docvqa_site.submissions.models import REJECTED, Submission, SubmissionState
from docvqa_site.ui.conditions import holds
from tests.docvqa_site.factories import make_submission, make_team, make_track

COLUMNS = ("acceptances", "rejections", "change_requests", "rejection_stands")
ROWS = list(product(range(3), range(3), range(3), (False, True)))


@pytest.mark.django_db
@pytest.mark.parametrize(
    "condition",
    [
        Q(acceptances=1),
        ~Q(acceptances=1),
        Q(acceptances__gt=F("rejections") + F("change_requests")),
        Q(acceptances__lt=2) & ~(Q(rejections__gte=1) | Q(change_requests__lte=F("acceptances"))),
        REJECTED,
        Q(),
    ],
    ids=str,
)
def test_a_condition_holds_in_memory_for_the_rows_that_the_database_finds(condition: Q) -> None:
    team, track = make_team(), make_track()
    for row in ROWS:
        make_submission(team, track, state=SubmissionState.SUBMITTED, **dict(zip(COLUMNS, row, strict=True)))
    found = set(Submission.objects.filter(condition).values_list(*COLUMNS))
    expected = {row for row in ROWS if holds(condition, dict(zip(COLUMNS, row, strict=True)))}
    assert found == expected


def test_a_lookup_that_is_no_comparison_is_not_guessed() -> None:
    with pytest.raises(KeyError):
        holds(Q(acceptances__in=[1]), {"acceptances": 1})
