"""What `pfl methods` lists is read from the modules and the configs."""

import pytest
from rich.console import Console

from starter_kit.configuration import config_names, load_settings, method_names
from starter_kit.method_list import Config, as_table, kit_configs
from starter_kit.settings import PrivateSettings


@pytest.fixture(scope="module")
def configs() -> dict[str, Config]:
    return {config.name: config for config in kit_configs()}


def test_every_config_and_every_method_is_there(configs: dict[str, Config]) -> None:
    assert list(configs) == config_names()
    assert {config.method for config in configs.values()} == set(method_names())


def test_each_is_told_in_one_sentence(configs: dict[str, Config]) -> None:
    for config in configs.values():
        assert 15 < len(config.about) < 200, config
        assert config.about[-1] == "."


def test_a_config_is_told_by_its_method_or_by_its_own_comment(configs: dict[str, Config]) -> None:
    assert configs["fedavg"].about == (
        "Federated averaging (McMahan et al. 2017, arXiv:1602.05629): the baseline of track 1."
    )
    assert configs["lora"].about.startswith("The winner of track 1: low-rank adapters")
    assert configs["lora"].about.endswith("trained for long.")


def test_private_are_those_whose_settings_are_and_whose_data_they_hide(configs: dict[str, Config]) -> None:
    for config in configs.values():
        assert bool(config.unit) == isinstance(load_settings(config.name), PrivateSettings), config
    assert configs["fl-provider-dp"].unit == "provider"
    assert configs["fedavg"].unit == ""


def test_the_table_has_a_row_for_each(configs: dict[str, Config]) -> None:
    console = Console(width=80)
    with console.capture() as captured:
        console.print(as_table())
    text = captured.get()
    assert all(f" {config.name} " in text and f" {config.method} " in text for config in configs.values())
