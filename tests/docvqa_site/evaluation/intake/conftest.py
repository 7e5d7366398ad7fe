"""A team and a track with budgets, whose runs intake accounts."""

import pytest

from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from tests.docvqa_site.factories import make_team, make_track


@pytest.fixture
def team():
    return make_team()


@pytest.fixture
def track():
    return make_track(BEST_ANLS_AT_BUDGET)
