from pathlib import Path

import pytest

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.configuration import (
    CONFIGS,
    config_names,
    find_config,
    load_settings,
    method_names,
    snapshot,
)
from starter_kit.methods import fedavg, fl_provider_dp

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
    assert isinstance(settings, fedavg.Settings)
    assert (settings.rounds, settings.clients_per_round, settings.local.learning_rate) == (2, 2, 0.01)


def test_changes_reach_top_and_nested_settings() -> None:
    settings = load_settings("fedavg", ["rounds=7", "local.learning_rate=0.5", "trainable=['*.wo.weight']"])
    assert settings.rounds == 7
    assert settings.local.learning_rate == 0.5
    assert settings.trainable == ["*.wo.weight"]


def test_the_budget_is_chosen_on_the_command_line() -> None:
    settings = load_settings("fl-provider-dp", ["target_epsilon=4"])
    assert isinstance(settings, fl_provider_dp.Settings)
    assert settings.target_epsilon == 4


def test_a_snapshot_reads_back_the_same(tmp_path: Path) -> None:
    for name in ("fedavg", "fl-provider-dp"):
        settings = load_settings(name)
        assert load_settings(written(tmp_path, snapshot(settings))) == settings


def test_an_unknown_setting_is_named_never_ignored() -> None:
    problem = refusal("fedavg", "learning_rate=1").problem
    assert problem.where == "fedavg.yaml, learning_rate"
    assert "clients_per_round" in problem.expected
    nested = refusal("fedavg", "lora.ranks=3").problem
    assert nested.where == "fedavg.yaml, lora.ranks"
    assert nested.expected == "one of alpha, dropout, rank, targets"
    assert "rounds" in refusal("fedavg", "rounds=-1").problem.where


def test_all_that_is_wrong_is_told_at_once() -> None:
    error = refusal("fl-provider-dp", "clip_norm=0", "provider_rate=2", "local.batch_size=none")
    assert {problem.where.split(", ")[1] for problem in error.problems} == {
        "local.batch_size",
        "clip_norm",
        "provider_rate",
    }


def test_a_target_or_the_noise_is_given() -> None:
    assert "give target_epsilon" in refusal("fl-provider-dp", "target_epsilon=null").problem.expected
    settings = load_settings("fl-provider-dp", ["target_epsilon=null", "noise_multiplier=2"])
    assert isinstance(settings, fl_provider_dp.Settings)
    assert settings.noise_multiplier == 2


def test_private_training_has_rounds_while_fedavg_may_have_none() -> None:
    assert load_settings("fedavg", ["rounds=0"]).rounds == 0
    assert "rounds" in refusal("fl-provider-dp", "rounds=0").problem.where


def test_an_unknown_name_is_answered_with_those_that_exist() -> None:
    assert ", ".join(config_names()) in refusal("fedavgg").problem.expected
    assert ", ".join(method_names()) in refusal("fedavg", "method=fedavgg").problem.expected


@pytest.mark.parametrize("text", ["- a list", "{", "!!python/object/apply:os.getcwd []", ""])
def test_what_is_no_mapping_of_plain_values_is_refused(tmp_path: Path, text: str) -> None:
    refusal(written(tmp_path, text))


@pytest.mark.parametrize("change", ["rounds", "=3", "rounds=[", "rounds.deep=1"])
def test_a_change_that_is_no_change_is_refused(change: str) -> None:
    assert change in refusal("fedavg", change).problem.where


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["target_epsilon=0"], "target_epsilon"),
        (["target_epsilon=-1"], "target_epsilon"),
        (["clip_norm=0"], "clip_norm"),
        (["provider_rate=null"], "give provider_rate, or both"),
        (["clients_per_round=2"], "give provider_rate, or both"),
        (["provider_rate=null", "providers_per_client=2"], "give provider_rate, or both"),
        (["codec=nf4"], "codec nf4"),
        (["codec=zip"], "'float32' or 'nf4'"),
        (["local.optimizer=adam"], "'adamw', 'sgd' or 'shampoo'"),
        (["delta=1"], "less than 1"),
    ],
)
def test_what_can_not_be_private_is_refused_with_what_can(changes: list[str], said: str) -> None:
    problem = refusal("fl-provider-dp", *changes).problem
    assert said in f"{problem.where} {problem.expected}"


OWN = """
from starter_kit.methods import fedavg

class Settings(fedavg.Settings):
    own: int = 3
"""


def test_a_method_of_ones_own_is_a_python_file_beside_the_config(tmp_path: Path) -> None:
    (tmp_path / "my_method.py").write_text(OWN)
    config = written(tmp_path, SMALL.replace("fedavg", "my_method.py"))
    assert load_settings(config, ["own=4"]).model_dump()["own"] == 4
    assert "own" in refusal(config, "own=x").problem.where


@pytest.mark.parametrize("text", ["", "Settings = 3", "class Settings: pass"])
def test_a_file_without_settings_is_no_method(tmp_path: Path, text: str) -> None:
    (tmp_path / "empty_method.py").write_text(text)
    assert (
        "class Settings"
        in refusal(written(tmp_path, SMALL.replace("fedavg", "empty_method.py"))).problem.expected
    )
