"""`pfl compare`, `pfl report` and `pfl tensorboard`: runs, for people to look at."""

import re
from pathlib import Path

from click.testing import CliRunner

from starter_kit.commands.main import app
from tests.starter_kit.commands.pfl import pfl
from tests.starter_kit.reporting.runs import SETTINGS, open_summary, private_summary, run_folder


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


def table(*arguments: str | Path, columns: int) -> str:
    """What `pfl compare` prints in a terminal of so many columns."""
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(app, ["compare", *map(str, arguments)]).stdout


def test_a_terminal_of_80_columns_shows_every_name_and_number(tmp_path: Path) -> None:
    summaries = {
        "low": open_summary(anls=0.5, bytes_total=1_200_000),
        "unscored": open_summary(anls=None, accuracy=None, split=None),
        "high": private_summary(anls=0.8),
    } | {f"a-long-name-of-a-run-{seed}": open_summary() for seed in range(3)}
    runs = [
        run_folder(tmp_path / name, [], summary, "seed: 1" if name.startswith("a-") else SETTINGS)
        for name, summary in summaries.items()
    ]
    text = table(*runs, "--group", columns=80)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "…" not in text
    for number in ("0.5000", "0.00120", "2.0000", "0.7123", "±0.0000"):
        assert number in text


def test_names_are_shown_as_they_are(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "[red]a|b*c", [], open_summary(experiment="[bold]<i>"), SETTINGS)
    text = table(run, columns=120)
    assert "[red]a|b*c" in text
    assert "[bold]<i>" in text
