"""`pfl compare`, `pfl report` and `pfl tensorboard`: runs, for people to look at."""

import re
from pathlib import Path

from tests.starter_kit.commands.pfl import pfl


def test_runs_are_compared_reported_and_shown_in_tensorboard(run: Path, scored: Path, tmp_path: Path) -> None:
    score = (scored / "printed").read_text().split()[1].rstrip(",")
    markdown = pfl("compare", run, scored, "--format", "markdown", "--by-anls").stdout
    assert re.findall(r"^\| (\w+) \| [^|]+ \| ([^|]+) \|", markdown, re.MULTILINE)[1:] == [
        ("scored", score),
        ("run", "–"),
    ]
    assert score in (scored / "report.html").read_text()
    (scored / "report.html").unlink()
    assert "report.html" in pfl("report", scored).stdout
    assert score in (scored / "report.html").read_text()
    pfl("tensorboard", scored, "--log-dir", tmp_path / "events")
    assert list((tmp_path / "events").iterdir())
    assert "summary.json" in pfl("compare", tmp_path, status=2).stderr
