"""`pfl base`."""

from pathlib import Path

from tests.starter_kit.commands.pfl import pfl


def test_base_weights_are_never_overwritten(base: Path) -> None:
    before = {path: path.read_bytes() for path in base.iterdir()}
    assert "E_RUN_FOLDER" in pfl("base", "create", base, status=2).stderr
    assert {path: path.read_bytes() for path in base.iterdir()} == before
