"""`pfl base`."""

from pathlib import Path

from tests.starter_kit.commands.pfl import pfl


def test_base_weights_are_never_overwritten(base: Path) -> None:
    before = {path: path.read_bytes() for path in base.iterdir()}
    rejected = pfl("base", "create", base, status=2).stderr
    assert "E_RUN_FOLDER" in rejected
    assert "pfl train" not in rejected
    assert {path: path.read_bytes() for path in base.iterdir()} == before
