"""`pfl methods`."""

from tests.starter_kit.commands.pfl import pfl


def test_the_methods_are_listed() -> None:
    listed = pfl("methods").stdout
    assert "fl-provider-dp" in listed
    assert "arXiv:1602.05629" in listed
    assert "pfl train CONFIG" in listed
