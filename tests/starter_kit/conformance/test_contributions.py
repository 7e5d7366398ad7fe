"""What is said of contributions when nobody made any, or when noise hid who did."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from evaluator.mechanisms.units import PrivacyUnit
from evaluator.messages.examinations import Verdict
from starter_kit.conformance.claims import Claims, Participation
from starter_kit.conformance.contributions import Reading, background_test, means_of
from starter_kit.conformance.lengths import LADDER, LadderReading, ladder_tests
from starter_kit.conformance.session import Releases

CLAIMS = Claims(
    unit=PrivacyUnit.PROVIDER,
    bound=1.0,
    norm=2,
    law="gaussian",
    scale=1.0,
    per_message=False,
    cumulative=False,
    client_rate=0.1,
    participation=Participation.ALL,
    unit_rate=1.0,
    sums_only=True,
)


def test_noise_beside_signal_has_no_power_where_nobody_took_part() -> None:
    """As in a few rounds for which clients are drawn by coins."""
    assert background_test([], np.arange(10), CLAIMS).verdict is Verdict.NO_POWER


def ladder(absent: int) -> LadderReading:
    """Read six rounds in which all units took part, but for the shortest one in the first `absent` rounds.

    Its part is read in every round all the same, as noise makes it seem once in some ten thousand rounds.
    """
    rounds, units = 6, len(LADDER)
    places = np.arange(2 * units).reshape(units, 2)
    rows = np.random.default_rng(absent).normal(0, 0.01, (rounds, places.size))
    rows[:, places[:, 0]] += np.minimum(LADDER, 1.0)
    rows[:absent, places[0, 0]] -= LADDER[0]
    included = np.ones((rounds, units), dtype=bool)
    sent = Releases(None, list(range(rounds)), rows, list(range(units)))
    reading = Reading(sent, places, included, means_of(rows[:, places], included))
    return LadderReading(reading, rows[:, places[:, 0]])


def test_a_contribution_too_short_to_be_recognized_for_sure_fails_no_test() -> None:
    session: Any = SimpleNamespace(
        claims=replace(CLAIMS, scale=0.01, participation=Participation.POISSON, unit_rate=0.9)
    )
    verdicts = {
        test.id: test.verdict for test in ladder_tests([ladder(absent=1)], [ladder(absent=0)], set(), session)
    }
    assert set(verdicts.values()) == {Verdict.PASSED}, verdicts
