"""`pfl methods`."""

from starter_kit.settings.method_list import kit_configs
from tests.starter_kit.commands.pfl import pfl


def test_every_config_is_listed_with_its_method() -> None:
    listed = pfl("methods").stdout
    words = " ".join(listed.split())
    for config in kit_configs():
        assert f"\n{config.name} " in listed
        assert f"[{config.method}" in words
    assert "[fl-provider-dp, provider]" in words
    assert "arXiv:1602.05629" in listed
    assert "pfl train CONFIG" in listed
