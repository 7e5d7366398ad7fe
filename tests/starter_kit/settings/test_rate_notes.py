"""The hint about the server learning rate, and the rates against the configs that they belong to."""

import pytest

from evaluator.messages.tuned_rates import SERVER_LEARNING_RATES, changes_at
from starter_kit.settings.configuration import load_settings
from starter_kit.settings.rate_notes import rate_notes


@pytest.mark.parametrize("config", SERVER_LEARNING_RATES)
def test_a_config_has_the_rate_of_its_own_epsilon(config: str) -> None:
    own = load_settings(config)
    assert own == load_settings(config, changes_at(config, vars(own)["target_epsilon"]))


@pytest.mark.parametrize("config", SERVER_LEARNING_RATES)
def test_the_rates_of_other_epsilons_are_suggested_unless_one_is_set(config: str) -> None:
    assert rate_notes(load_settings(config)) == []
    for epsilon, rate in SERVER_LEARNING_RATES[config].items():
        assert rate_notes(load_settings(config, changes_at(config, epsilon))) == []
        hints = rate_notes(load_settings(config, [f"target_epsilon={epsilon}"]))
        assert hints == [] if epsilon == 8 else hints[0].endswith(f"--set server_learning_rate={rate:g}")


def test_an_epsilon_between_two_boards_takes_the_rate_of_the_board_where_it_ranks() -> None:
    assert "server_learning_rate=0.7" in rate_notes(load_settings("fl-provider-dp", ["target_epsilon=2"]))[0]
    assert rate_notes(load_settings("fl-provider-dp", ["target_epsilon=20"])) == []
    assert rate_notes(load_settings("fedavg")) == []
