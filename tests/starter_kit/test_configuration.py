from pathlib import Path

import pytest

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.configuration import (
    CONFIGS,
    FedAvgSettings,
    ProviderDPSettings,
    find_config,
    load_settings,
    snapshot,
)

SMALL = """
method: fedavg
experiment: mine
rounds: 2
local: {learning_rate: 0.01}
"""


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def refusal(config: str, *changes: str) -> ProblemError:
    with pytest.raises(ProblemError) as caught:
        load_settings(config, changes)
    assert all(problem.code is ErrorCode.CONFIGURATION for problem in caught.value.problems)
    return caught.value


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_config_is_found_by_name_and_loads(path: Path) -> None:
    assert find_config(path.stem) == path
    assert load_settings(path.stem).experiment == path.stem


def test_a_file_of_ones_own_is_read(tmp_path: Path) -> None:
    settings = load_settings(written(tmp_path, SMALL))
    assert isinstance(settings, FedAvgSettings)
    assert (settings.rounds, settings.clients_per_round, settings.local.learning_rate) == (2, 2, 0.01)


def test_changes_reach_top_and_nested_settings() -> None:
    settings = load_settings("fedavg", ["rounds=7", "local.learning_rate=0.5", "trainable=['*.wo.weight']"])
    assert settings.rounds == 7
    assert settings.local.learning_rate == 0.5
    assert settings.trainable == ["*.wo.weight"]


def test_the_budget_is_chosen_on_the_command_line() -> None:
    settings = load_settings("fl-provider-dp", ["target_epsilon=4"])
    assert isinstance(settings, ProviderDPSettings)
    assert settings.target_epsilon == 4


def test_a_snapshot_reads_back_the_same(tmp_path: Path) -> None:
    for name in ("fedavg", "fl-provider-dp"):
        settings = load_settings(name)
        assert load_settings(written(tmp_path, snapshot(settings))) == settings


def test_an_unknown_setting_is_named_never_ignored() -> None:
    problem = refusal("fedavg", "learning_rate=1").problem
    assert problem.where == "fedavg.yaml, learning_rate"
    assert "rounds" in refusal("fedavg", "rounds=-1").problem.where


def test_all_that_is_wrong_is_told_at_once() -> None:
    error = refusal("fl-provider-dp", "clip_norm=0", "provider_rate=2", "local.batch_size=none")
    assert [problem.where.split(", ")[1] for problem in error.problems] == [
        "local.batch_size",
        "clip_norm",
        "provider_rate",
    ]


def test_exactly_one_of_target_and_noise_is_given() -> None:
    assert "exactly one" in refusal("fl-provider-dp", "noise_multiplier=2").problem.expected
    assert "exactly one" in refusal("fl-provider-dp", "target_epsilon=null").problem.expected
    settings = load_settings("fl-provider-dp", ["target_epsilon=null", "noise_multiplier=2"])
    assert isinstance(settings, ProviderDPSettings)
    assert settings.noise_multiplier == 2


def test_private_training_has_rounds_while_fedavg_may_have_none() -> None:
    assert load_settings("fedavg", ["rounds=0"]).rounds == 0
    assert "rounds" in refusal("fl-provider-dp", "rounds=0").problem.where


def test_an_unknown_name_is_answered_with_those_that_exist() -> None:
    assert "fedavg, fl-provider-dp" in refusal("fedavgg").problem.expected


@pytest.mark.parametrize("text", ["- a list", "{", "!!python/object/apply:os.getcwd []", ""])
def test_what_is_no_mapping_of_plain_values_is_refused(tmp_path: Path, text: str) -> None:
    refusal(written(tmp_path, text))


@pytest.mark.parametrize("change", ["rounds", "=3", "rounds=[", "rounds.deep=1"])
def test_a_change_that_is_no_change_is_refused(change: str) -> None:
    assert change in refusal("fedavg", change).problem.where
