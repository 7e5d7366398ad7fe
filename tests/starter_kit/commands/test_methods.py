"""`pfl methods`."""

import pytest

from starter_kit.settings.method_list import kit_configs, listed_plugins
from tests.starter_kit.commands.pfl import pfl, run_pfl

CONFIGS = kit_configs()


def in_terminal(*arguments: str) -> str:
    """What is printed in 80 columns."""
    return run_pfl("methods", *arguments, environment={"COLUMNS": "80"}).stdout


def test_everything_is_named_on_two_screens_and_what_a_laptop_trains_is_described() -> None:
    listed = in_terminal()
    words = listed.replace(",", " ").split()
    assert {config.name for config in CONFIGS} <= set(words)
    assert {plugin.name for plugin in listed_plugins()} <= set(words)
    assert len(listed.splitlines()) < 80
    assert "[fl-provider-dp, provider]" in " ".join(listed.split())
    assert "arXiv:1602.05629" in listed
    assert "pfl train CONFIG" in listed


@pytest.mark.parametrize(("kind", "folder"), [("tiny", ""), ("plugins", "plugins"), ("full", "full")])
def test_every_config_is_described_with_its_method_in_the_list_of_its_kind(kind: str, folder: str) -> None:
    listed = in_terminal(kind)
    for config in CONFIGS:
        is_of_kind = config.name.rpartition("/")[0] == folder
        assert (f"\n{config.name} " in listed) == is_of_kind
        assert not is_of_kind or f"[{config.method}" in " ".join(listed.split())


def test_plugins_are_described_beside_their_examples() -> None:
    listed = in_terminal("plugins")
    for plugin in listed_plugins():
        assert f"\n{plugin.setting}: {plugin.name} " in listed


def test_another_kind_is_answered_with_those_that_there_are() -> None:
    rejected = pfl("methods", "large", status=2).stderr
    assert "'tiny', 'plugins', 'full'" in rejected
