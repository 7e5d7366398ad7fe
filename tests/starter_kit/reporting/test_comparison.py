"""Runs beside each other, in every form, and what isn't a run."""

import csv
import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.reporting.comparison import RunComparison
from starter_kit.reporting.metrics import RunSummary
from tests.starter_kit.reporting.runs import SETTINGS, open_summary, private_summary, run_folder

MakeRun = Callable[..., Path]


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    def make(name: str, summary: RunSummary, settings: str = SETTINGS) -> Path:
        return run_folder(tmp_path / name, [], summary, settings)

    return make


@pytest.fixture
def runs(make_run: MakeRun) -> list[Path]:
    return [
        make_run("low", open_summary(anls=0.5, bytes_total=1_200_000)),
        make_run("unscored", open_summary(anls=None, accuracy=None, split=None)),
        make_run("high", private_summary(anls=0.8)),
    ]


def markdown(*folders: Path, by_anls: bool = False, group: bool = False) -> tuple[list[list[str]], list[str]]:
    """The cells of each row, and the notes below."""
    lines = RunComparison.of(folders, by_anls=by_anls, group=group).as_markdown().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("|")]
    return rows[2:], [line.removeprefix("- ") for line in lines if line.startswith("- ")]


def records(*folders: Path, **options: bool) -> list[dict[str, object]]:
    return json.loads(RunComparison.of(folders, **options).as_json())


def test_runs_keep_the_given_order(runs: list[Path]) -> None:
    rows, notes = markdown(*runs)
    assert rows == [
        ["low", "mine", "0.5000", "0.6123", "0.00120", "∞"],
        ["unscored", "mine", "–", "–", "0.120", "∞"],
        ["high", "mine", "0.8000", "0.6123", "0.120", "2.0000"],
    ]
    assert notes == [
        "ANLS and accuracy: on the split valid.",
        "–: not evaluated yet; run `pfl evaluate` on it.",
        "GB: 10⁹ bytes, sent in both directions.",
        "ε at δ = 1e-05: for each provider unless it says otherwise, of one run alone, as its trainer claims.",
    ]


def test_runs_are_sorted_by_anls_those_without_last(runs: list[Path]) -> None:
    assert [row[0] for row in markdown(*runs, by_anls=True)[0]] == ["high", "low", "unscored"]


def test_notes_state_only_what_concerns_the_rows(make_run: MakeRun) -> None:
    _, notes = markdown(make_run("one", open_summary()))
    assert notes == ["ANLS and accuracy: on the split valid.", "GB: 10⁹ bytes, sent in both directions."]


def test_a_unit_other_than_the_provider_and_a_delta_of_its_own_are_stated(make_run: MakeRun) -> None:
    provider, client = make_run("p", private_summary()), make_run("c", private_summary(unit="client"))
    assert [row[-1] for row in markdown(provider, client)[0]] == ["2.0000", "2.0000 (client)"]
    other = make_run("d", private_summary(unit="record", delta=1e-6))
    rows, notes = markdown(provider, other)
    assert [row[-1] for row in rows] == ["2.0000 (δ = 1e-05)", "2.0000 (record, δ = 1e-06)"]
    assert notes[-1].startswith("ε: for each provider")


def test_scores_on_different_splits_say_which(make_run: MakeRun) -> None:
    rows, notes = markdown(make_run("v", open_summary()), make_run("t", open_summary(split="test")))
    assert [row[2] for row in rows] == ["0.7123 (valid)", "0.7123 (test)"]
    assert not any("on the split" in note for note in notes)


def test_repetitions_share_a_row_with_mean_and_deviation(make_run: MakeRun) -> None:
    seeds = [
        make_run(
            f"s{seed}",
            open_summary(anls=0.5 + seed / 10, bytes_total=1_000_000_000 + seed),
            f"method: fedavg\nexperiment: e{seed}\nseed: {seed}\ndevice: cpu\n",
        )
        for seed in range(3)
    ]
    rows, notes = markdown(*seeds, group=True)
    assert rows == [["s0, s1, s2", "mine", "3", "0.6000 ±0.1000", "0.6123 ±0.0000", "1.00", "∞"]]
    assert notes[-1].startswith("±: standard deviation (n − 1) over n runs.")
    (record,) = records(*seeds, group=True)
    assert record["n"] == 3
    assert record["anls_deviation"] == pytest.approx(0.1)
    assert (record["bytes_total"], record["bytes_total_deviation"]) == (1_000_000_001, 1.0)


@pytest.mark.parametrize(
    ("changes", "settings"),
    [
        ({}, SETTINGS.replace("0.01", "0.02")),
        ({"base_sha256": "c" * 64}, SETTINGS),
        ({"split": "test"}, SETTINGS),
        ({"method": "fl-provider-dp"}, SETTINGS),
        ({"seconds": None, "epsilon": 1.0, "delta": 1e-5, "unit": "provider"}, SETTINGS),
    ],
    ids=["a setting", "the base weights", "the split", "the method", "privacy"],
)
def test_runs_that_differ_in_more_than_the_seed_do_not_share_a_row(
    make_run: MakeRun, changes: dict[str, object], settings: str
) -> None:
    one = make_run("one", open_summary())
    assert len(records(one, make_run("other", open_summary(**changes), settings), group=True)) == 2
    assert (
        len(
            records(one, make_run("same", open_summary(), SETTINGS.replace("seed: 1", "seed: 2")), group=True)
        )
        == 1
    )


def test_settings_that_differ_are_named_below_with_their_runs(make_run: MakeRun) -> None:
    lora = SETTINGS + "codec: nf4\nlora:\n  rank: 6\n"
    runs = [
        make_run("plain", open_summary()),
        make_run("lora", open_summary(), lora),
        make_run("fast", open_summary(), SETTINGS.replace("0.01", "0.02")),
        make_run(
            "private", private_summary(), "method: fl-provider-dp\nlocal: {learning_rate: 0.01}\ndelta: 1e-5"
        ),
    ]
    notes = markdown(*runs)[1]
    assert notes[-3:] == [
        "local.learning_rate: 0.01 (plain, lora, private); 0.02 (fast).",
        "codec: – (plain, fast, private); nf4 (lora).",
        "lora.rank: – (plain, fast, private); 6 (lora).",
    ]
    assert records(*runs)[1]["settings"] == {"local.learning_rate": 0.01, "codec": "nf4", "lora.rank": 6}
    assert not any("learning_rate" in note for note in markdown(*runs[:2])[1])


def test_repetitions_have_no_mean_while_one_is_not_evaluated(make_run: MakeRun) -> None:
    both = [make_run("a", open_summary()), make_run("b", open_summary(accuracy=None))]
    (record,) = records(*both, group=True)
    assert record["anls"] == pytest.approx(0.71239)
    assert record["accuracy"] is None


def test_the_largest_epsilon_of_repetitions_is_shown(make_run: MakeRun) -> None:
    both = [make_run("a", private_summary(epsilon=1.5)), make_run("b", private_summary(epsilon=1.75))]
    assert records(*both, group=True)[0]["epsilon"] == 1.75


def test_json_keeps_numbers_as_they_are(runs: list[Path]) -> None:
    first, unscored, private = records(*runs)
    assert (first["runs"], first["anls"], first["bytes_total"], first["epsilon"]) == (
        ["low"],
        0.5,
        1_200_000,
        None,
    )
    assert (unscored["anls"], unscored["split"]) == (None, None)
    assert (private["epsilon"], private["delta"], private["unit"]) == (1.99991, 1e-5, "provider")


def test_csv_has_one_line_a_row_and_numbers_that_readers_take(runs: list[Path]) -> None:
    rows = list(csv.DictReader(StringIO(RunComparison.of(runs).as_csv())))
    assert [row["runs"] for row in rows] == ["low", "unscored", "high"]
    assert [float(row["epsilon"]) for row in rows] == [float("inf"), float("inf"), 1.99991]
    assert [row["anls"] for row in rows] == ["0.5", "", "0.8"]


def test_names_are_escaped_in_markdown(make_run: MakeRun) -> None:
    run = make_run("[red]a|b*c", open_summary(experiment="[bold]<i>"))
    assert markdown(run)[0][0][0] == r"\[red\]a\|b\*c"


def test_everything_that_is_no_run_is_rejected_at_once(tmp_path: Path, runs: list[Path]) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ProblemError) as error:
        RunComparison.of([runs[0], tmp_path / "empty", tmp_path / "nowhere"])
    assert [problem.where for problem in error.value.problems] == [
        str(tmp_path / "empty"),
        str(tmp_path / "nowhere"),
    ]
    assert {problem.code for problem in error.value.problems} == {ErrorCode.RUN_FOLDER}
    assert "pfl train" in error.value.problem.next_step


@pytest.mark.parametrize("settings", ["a: [", "- a list", "\x00"])
def test_settings_that_cannot_be_read_are_rejected_where_they_are_needed(
    make_run: MakeRun, settings: str
) -> None:
    run = make_run("run", open_summary(), settings)
    assert len(records(run)) == 1
    with pytest.raises(ProblemError) as error:
        RunComparison.of([run], group=True)
    assert error.value.problem.where == str(run / "settings.yaml")


def test_a_run_is_named_by_its_folder_also_from_within(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(make_run("here", open_summary()))
    assert records(Path())[0]["runs"] == ["here"]


def test_runs_in_folders_of_one_name_are_told_apart(make_run: MakeRun) -> None:
    for folder in ("a", "b"):
        make_run(folder, open_summary())
    runs = [make_run(name, open_summary()) for name in ("a/run", "b/run", "other")]
    assert [record["runs"] for record in records(*runs)] == [["a/run"], ["b/run"], ["other"]]
