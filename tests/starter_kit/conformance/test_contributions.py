"""What is said of contributions when nobody made any."""

import numpy as np

from evaluator.mechanisms.units import PrivacyUnit
from evaluator.messages.examinations import Verdict
from starter_kit.conformance.claims import Claims, Participation
from starter_kit.conformance.contributions import background_test

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
