"""The closed form of docs/published-epsilon.md gives the numbers that its title and text state."""

from pathlib import Path

import pytest

from tests.studies.catalog import published
from tests.studies.published_epsilon import Exposed, exposed_runs, gaussian_delta

EXPOSED = exposed_runs()
TEXT = Path(__file__).with_name("published_epsilon.md").read_text()


def test_the_published_epsilons_are_those_of_the_title_and_of_the_accountant() -> None:
    accounted = {found.setting: found.two_stage_pld for found in published().read()}
    assert [f"{exposed.epsilon:.2f}" for exposed in EXPOSED] == ["14.46", "8.62", "2.78"]
    for exposed in EXPOSED:
        assert exposed.epsilon == pytest.approx(accounted[exposed.run], rel=2e-4)


@pytest.mark.parametrize("exposed", EXPOSED, ids=lambda exposed: f"{exposed.run.claimed_epsilon:g}")
def test_the_closed_form_is_a_mean_over_the_rounds_of_the_client(exposed: Exposed) -> None:
    assert sum(exposed.chances) == pytest.approx(1)
    # More is spent in the likeliest number of rounds alone than is claimed.
    assert exposed.epsilon_after(2) > exposed.run.claimed_epsilon
    assert exposed.epsilon_after(2) < exposed.epsilon < exposed.epsilon_after(exposed.run.rounds)
    assert exposed.delta(exposed.epsilon) == pytest.approx(1e-5)


def test_the_delta_of_a_gaussian_mechanism_is_its_total_variation_at_no_epsilon() -> None:
    assert gaussian_delta(0, 1) == pytest.approx(0.38292492)
    assert gaussian_delta(3, 0) == 0


def test_the_text_has_the_competitions_epsilons_and_the_published_noise() -> None:
    accounted = published().read()
    of_the_kit = [f"{found.two_stage_pld:.2f}" for found in accounted if found.setting.source == "kit"]
    assert f"{of_the_kit[0]}, {of_the_kit[1]} and {of_the_kit[2]}" in TEXT
    noise = [f"{exposed.run.noise_multiplier:.3f}" for exposed in EXPOSED]
    assert f"{noise[0]}, {noise[1]} and {noise[2]}" in " ".join(TEXT.split())
