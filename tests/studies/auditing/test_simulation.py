"""The promises of docs/auditing.md, by simulation: who is accused, and from which size on a fault is found."""

import pytest

from tests.studies.auditing.page import page
from tests.studies.auditing.simulation import SAMPLINGS, Fault, Simulated, cases, simulate


@pytest.fixture(scope="module")
def simulated() -> list[Simulated]:
    return [simulate(case) for case in cases(SAMPLINGS[:1], epsilons=[1])]


def test_honest_runs_are_refuted_in_at_most_one_of_a_thousand(simulated: list[Simulated]) -> None:
    honest = [found for found in simulated if found.fault is Fault.NONE]
    assert {found.runs for found in honest} == {1000}
    assert max(found.refuted for found in honest) <= 1


def test_runs_without_clip_and_noise_are_found_from_400_canaries_on(simulated: list[Simulated]) -> None:
    faulty = {found.canaries: found for found in simulated if found.fault is Fault.NO_CLIP_NO_NOISE}
    assert faulty[400].refuted_among_teams >= 95
    assert faulty[1000].refuted_among_teams >= 95


def test_the_page_claims_what_was_simulated(simulated: list[Simulated]) -> None:
    text = page(simulated)
    assert "ε = 1: from 400 canaries on" in text
    assert "ε = 8: not at any of these sizes" in text
    assert f"| 10 rounds of every 5th provider | 1 | 400 | {Fault.NO_CLIP_NO_NOISE} | 100 of 100 |" in text
