"""The hash that names a trainer, recomputed with the shell's own tools."""

import shutil
import subprocess
from pathlib import Path

import pytest

from starter_kit.runs import record_line
from starter_kit.runs.record_line import code_sha256


def test_it_is_what_sha256sum_gives_of_the_list_of_sources(tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("rounds: 3\n")
    script = f"""
    cd {record_line.SOURCES.parent}
    {{ find starter_kit -name '*.py' | LC_ALL=C sort | xargs sha256sum; cd {tmp_path}; sha256sum settings.yaml; }} \
        | sha256sum | cut -d' ' -f1
    """
    expected = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    assert code_sha256(settings.read_text()) == expected


def test_every_source_and_every_setting_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(record_line.SOURCES, tmp_path / "starter_kit")
    monkeypatch.setattr(record_line, "SOURCES", tmp_path / "starter_kit")
    seen = {code_sha256("rounds: 3"), code_sha256("rounds: 4")}
    with (tmp_path / "starter_kit" / "dp" / "noise.py").open("a") as file:
        file.write("# quieter\n")
    seen.add(code_sha256("rounds: 3"))
    (tmp_path / "starter_kit" / "dp" / "noise.py").rename(tmp_path / "starter_kit" / "dp" / "loud.py")
    seen.add(code_sha256("rounds: 3"))
    assert len(seen) == 4
