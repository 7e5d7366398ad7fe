"""`pfl federate` on its own; federations of several processes are in tests/starter_kit/engines."""

import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

from starter_kit.commands.main import app
from starter_kit.engines.flower.address import free_port


def test_what_a_node_leaves_behind_is_removed_and_nothing_of_its_operators(
    base: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "thesis.tex").touch()
    before = signal.getsignal(signal.SIGTERM)
    nowhere = ["--server", f"127.0.0.1:{free_port()}", "--wait", "1", "--home", "."]
    options = ["--data", str(data), "--base", str(base), "--client", "0", *nowhere]
    try:
        ended = CliRunner().invoke(app, ["federate", "node", "fedavg", *options])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended.exit_code == 0, ended.output
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
