"""Nothing is lost and nothing runs twice, whatever fails. `make faults` writes the counts into docs/reliability.md."""

from collections.abc import Callable

import pytest

from tests.faults.back_ends import Kind
from tests.faults.counts import Counts
from tests.faults.scenarios import SCENARIOS, Scenario

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600)]

# One kind after the other, since one site runs at a time.
CASES = [
    pytest.param(scenario, kind, id=f"{scenario.name}-{kind.name.lower()}")
    for kind in Kind
    for scenario in SCENARIOS
    if kind in scenario.kinds
]


@pytest.mark.parametrize(("scenario", "kind"), CASES)
def test_nothing_is_lost_and_nothing_runs_twice(
    scenario: Scenario, kind: Kind, counted: Callable[[Scenario, Kind], Counts]
) -> None:
    if missing := kind.missing or scenario.missing:
        pytest.skip(missing)
    counts = counted(scenario, kind)
    assert counts.lost == counts.twice == 0
