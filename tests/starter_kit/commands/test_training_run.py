"""What `pfl train` and `pfl federate server` report about a run's key and token."""

from pathlib import Path

import pytest

from starter_kit.commands.training_run import credentials_of
from starter_kit.settings.configuration import load_settings


def test_a_key_is_reported_when_it_is_made_and_not_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    obtain = credentials_of(
        load_settings("fl-provider-dp"),
        tmp_path / "key.pem",
        "a-token-of-the-site",
        "track-2",
        None,
        tmp_path / "run",
        resumed=False,
    )
    obtain()
    assert f"{tmp_path / 'key.pem'}: new key that signs your records" in capsys.readouterr().out
    obtain()
    assert capsys.readouterr().out == ""


def test_a_run_without_a_token_is_reported_unless_it_is_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    credentials_of(
        load_settings("fl-provider-dp"),
        tmp_path / "key.pem",
        None,
        "track-2",
        None,
        tmp_path / "run",
        resumed=False,
    )()
    assert "you can check this run but not submit it" in capsys.readouterr().out
    credentials_of(
        load_settings("fl-provider-dp"),
        tmp_path / "key.pem",
        None,
        "track-2",
        None,
        tmp_path / "run",
        resumed=True,
    )()
    assert capsys.readouterr().out == ""
