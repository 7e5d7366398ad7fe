"""What `pfl methods` lists is read from the modules and the configs."""

import re
from pathlib import Path

import pytest

from evaluator.parametrizations.known import PARAMETRIZATIONS
from starter_kit.settings.config_files import config_names, method_names
from starter_kit.settings.configuration import load_settings
from starter_kit.settings.method_list import PLUGIN_SETTINGS, Config, kit_configs, listed_plugins
from starter_kit.settings.plugin_list import KINDS
from starter_kit.settings.run_settings import PrivateSettings
from tests.starter_kit.settings.federation import FEDERATION
from tests.studies.settings_page import kit_plugins

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture(scope="module")
def configs() -> dict[str, Config]:
    return {config.name: config for config in kit_configs()}


def test_every_config_and_every_method_is_there(configs: dict[str, Config]) -> None:
    assert list(configs) == config_names()
    assert {config.method for config in configs.values()} == set(method_names())


def test_each_is_described_in_one_sentence(configs: dict[str, Config]) -> None:
    for config in configs.values():
        assert 15 < len(config.about) < 200, config
        assert config.about[-1] == "."


def test_a_config_is_described_by_its_method_or_by_its_own_comment(configs: dict[str, Config]) -> None:
    assert configs["fedavg"].about == (
        "Federated averaging (McMahan et al. 2017, arXiv:1602.05629): the baseline of track 1."
    )
    assert configs["lora"].about.startswith(
        "The winner of track 1 as it was tuned after the competition: low-rank"
    )
    assert configs["lora"].about.endswith("trained for long.")


def test_private_are_those_whose_settings_are_and_whose_data_they_hide(configs: dict[str, Config]) -> None:
    for config in configs.values():
        settings = load_settings(config.name)
        assert config.method == settings.method
        assert bool(config.unit) == isinstance(settings, PrivateSettings), config
        guarantee = settings.plan(FEDERATION).guarantee
        assert config.unit == (guarantee.unit if guarantee else "")


def test_every_plugin_is_listed_with_the_setting_that_names_it() -> None:
    assert {kind.folder: kind.setting for kind in KINDS} == PLUGIN_SETTINGS
    listed = [(plugin.setting, plugin.name, plugin.about) for plugin in listed_plugins()]
    plugins = [(plugin.kind.setting, plugin.name, plugin.about) for plugin in kit_plugins()]
    assert listed[: len(plugins)] == plugins
    assert {(setting, name) for setting, name, _ in listed[len(plugins) :]} == {
        ("lora.type", name) for name in PARAMETRIZATIONS
    }


def test_every_parametrization_is_documented() -> None:
    rows = (DOCS / "methods.md").read_text().splitlines()
    for name in PARAMETRIZATIONS:
        assert any(row.startswith(f"| `{name}` |") for row in rows), name


def test_the_guide_names_every_config_and_its_example_is_one(tmp_path: Path) -> None:
    guide, full_size = ((DOCS / page).read_text() for page in ("starter-kit.md", "full-size.md"))
    for name in config_names():
        assert f"`{name}`" in (full_size if name.startswith("full/") else guide)
    (example,) = re.findall(r"^```yaml\n(.+?)^```", guide, re.MULTILINE | re.DOTALL)
    (tmp_path / "mine.yaml").write_text(example)
    assert load_settings(str(tmp_path / "mine.yaml")).experiment == "my-first"


def test_every_method_has_a_section_that_names_its_configs(configs: dict[str, Config]) -> None:
    text = (DOCS / "methods.md").read_text()
    sections = dict(re.findall(r"^## (\S+)\n(.+?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    assert set(sections) == set(method_names())
    for config in configs.values():
        is_named = f"`{config.name}`" in sections[config.method]
        assert config.name == config.method or "/" in config.name or is_named
        assert ("Guarantee" in sections[config.method]) == bool(config.unit)
