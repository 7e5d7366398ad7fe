"""Every view and every export shows the rows of the boards, with as many cells as heads."""

import csv
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from jsonschema_rs import Draft202012Validator

from docvqa_site.boards import verify_snapshot
from docvqa_site.boards.boards import stored_boards
from docvqa_site.boards.column import Shown
from docvqa_site.boards.columns import COLUMNS, catalog, columns_of
from docvqa_site.boards.published import CSV_COLUMNS
from docvqa_site.challenge.models import Track
from docvqa_site.challenge.rankings import RANKINGS
from docvqa_site.reviews.models import Decision, ProofReview
from docvqa_site.submissions.models import Run, RunState, SubmissionState
from evaluator.messages.jobs import Check, CheckStatus, TrustLevel
from evaluator.messages.leakage import Leakage
from evaluator.messages.results import QuestionTypeScore, RunResults
from tests.docvqa_site.factories import (
    make_epsilons,
    make_run,
    make_submission,
    make_team,
    make_track,
    make_user,
)

pytestmark = pytest.mark.django_db

# A value for every result that a run can have. The check below fails when a new one is missing here.
EVERYTHING: dict[str, Any] = {
    "anls": 0.91234,
    "anls_low": 0.9,
    "anls_high": 0.92,
    "accuracy": 0.8,
    "public_anls": 0.93,
    "public_accuracy": 0.81,
    "question_types": [QuestionTypeScore(name="total", anls=0.5, anls_low=0.4, anls_high=0.6)],
    "bytes_total": 1_000_000,
    "bytes_sent": 1_200_000,
    "first_download_bytes": 200_000,
    "decoder_bytes": 4000,
    "counting": "counted",
    "not_counted_because": "",
    "rounds_folded": 10,
    "log_rounds": 30,
    "log_flag": "",
    "bytes_needed": 900,
    "epsilon": 0.9,
    "epsilons": make_epsilons(0.9, 0.8, 1.2),
    "accountant": "PLD, 1.0, fine",
    "membership": {"balanced_accuracy": 0.6, "true_positive_rates": [], "gaussian_mu": None},
    "leakage": Leakage(providers=40, auc=0.65),
    "joint_epsilon": 1.4,
    "joint_runs": 2,
    "trust_level": TrustLevel.REPLAYED,
    "trust_rounds": "4 of 100 rounds",
    "trust_by": "=cmd()",
    "trust_at": timezone.now(),
    "decimals": 3,
    "unbound": "record.linkage: flagged",
    "failed_level": None,
    "failed_because": "",
    "checks": [Check(id="record.budget", status=CheckStatus.FLAGGED, found="something")],
}

# Those that only accounting reports.
ACCOUNTED = {"epsilon", "epsilons", "accountant", "membership", "joint_epsilon", "joint_runs", "unbound"}


def test_every_result_is_tried_with_and_without_a_value() -> None:
    assert EVERYTHING.keys() == RunResults.model_fields.keys()


@pytest.fixture
def tracks() -> list[Track]:
    """A track of each kind, with runs of every status and with every and no optional value."""
    made = []
    for key, kind in RANKINGS.items():
        track = make_track(
            key, slug=key.replace("_", "-"), leakage_set="red", **dict.fromkeys(kind.thresholds, 0.5)
        )
        for budget in track.run_budgets():
            for title, run in _runs(track, budget):
                run.submission.title = title
                run.submission.save()
        made.append(track)
    return made


def _runs(track: Track, budget: float | None) -> Iterator[tuple[str, Run]]:
    everything = {
        name: value for name, value in EVERYTHING.items() if track.kind.is_accounted or name not in ACCOUNTED
    }

    def run(results: dict[str, Any], **fields: Any) -> Run:
        submission = make_submission(make_team(), track, state=SubmissionState.SUBMITTED)
        for name in fields.keys() & {"is_baseline", "anonymous", "alias"}:
            setattr(submission, name, fields.pop(name))
        submission.save()
        return make_run(submission, state=RunState.SCORED, budget=budget, **results, **fields)

    yield "Everything", run(everything)
    yield "Bare", run({"anls": 0.6, "accuracy": 0.4})
    yield "Poor", run(everything | {"anls": 0.1, "epsilon": 900.0})
    yield "Failed", run(everything | {"failed_level": TrustLevel.RERUN, "failed_because": "ANLS differs."})
    yield "Unconfirmed", run(everything | {"trust_level": TrustLevel.CONFORMING})
    declared = {"counting": "declared", "rounds_folded": 0, "not_counted_because": "No sandbox."}
    yield "Declared", run(everything | declared)
    yield "Doubtful", run(everything | declared | {"log_flag": "log.directions"})
    yield "Disqualified", run(everything, disqualified_because="=copied")
    yield "Baseline", run(everything | {"leakage": Leakage(providers=40)}, is_baseline=True)
    yield "Anonymous", run(everything, anonymous=True, alias=f"Anonymous {track.slug} {budget}")
    rejected = run(everything)
    if track.kind.needs_proof:
        for number in range(track.required_reviews):
            ProofReview.objects.create(
                submission=rejected.submission,
                reviewer=make_user(f"r{rejected.pk}{number}@example.org"),
                decision=Decision.REJECTED,
                reason="no",
                decided_at=timezone.now() - timedelta(days=8),
            )
    yield "Rejected", rejected


def rows_of(track: Track) -> list[list[tuple[int | None, str]]]:
    return [[(row.rank, row.entry.method) for row in board] for board in stored_boards(track)]


def test_keys_are_unique_and_documented() -> None:
    assert len({column.key for column in COLUMNS}) == len(COLUMNS)
    assert all(column.meaning.endswith(".") and column.shown for column in COLUMNS)


def test_every_single_result_is_in_the_data() -> None:
    single = {
        name
        for name, field in RunResults.model_fields.items()
        if "list" not in str(field.annotation) and name != "membership"
    }
    assert single <= {column.key for column in COLUMNS if Shown.DATA in column.shown}


def test_the_csv_file_of_every_track_has_the_rows_of_its_boards(client: Client, tracks: list[Track]) -> None:
    for track in tracks:
        heads, *lines = csv.reader(client.get(f"/leaderboard/{track.slug}.csv").text.splitlines())
        assert heads == CSV_COLUMNS
        assert len(set(heads)) == len(heads)
        assert {len(line) for line in lines} == {len(heads)}
        found = [(line[heads.index("rank")], line[heads.index("method")]) for line in lines]
        assert found == [(str(rank or ""), method) for board in rows_of(track) for rank, method in board]
        everything = next(line for line in lines if "Everything" in line)
        assert dict(zip(heads, everything, strict=True))["trust_by"] == "'=cmd()"


def test_json_follows_its_schema_and_has_the_rows_of_the_boards(client: Client, tracks: list[Track]) -> None:
    for track in tracks:
        body = client.get(f"/leaderboard/{track.slug}.json").json()
        schema = client.get(f"/leaderboard/{track.slug}.schema.json").json()
        del body["$schema"]
        Draft202012Validator(schema).validate(body)
        found = [[(row["rank"], row["method"]) for row in board["rows"]] for board in body["boards"]]
        assert found == rows_of(track)
        from_api = client.get(f"/api/v1/leaderboards/{track.slug}?limit=100").json()
        assert [
            [(row["rank"], row["method"]) for row in board["rows"]] for board in from_api["boards"]
        ] == found


def test_the_text_has_a_line_for_every_row_under_its_heads(
    capsys: pytest.CaptureFixture[str], tracks: list[Track]
) -> None:
    for track in tracks:
        call_command("leaderboard", track.slug)
        printed = capsys.readouterr().out
        for board in rows_of(track):
            for _, method in board:
                assert re.search(rf"^\S+ +{method}\b", printed, re.MULTILINE)
        assert printed.count("Rank ") == len(rows_of(track))


def test_a_snapshot_is_written_and_verified(tmp_path: Path, tracks: list[Track]) -> None:
    call_command("freeze", tmp_path / "frozen")
    assert verify_snapshot.problems(tmp_path / "frozen") == []
    assert {path.stem for path in (tmp_path / "frozen").glob("*.csv")} == {track.slug for track in tracks}


def tables(html: str) -> Iterator[tuple[int, list[int]]]:
    """Yield the number of heads of each table, and the numbers of cells of its rows."""
    for table in re.findall(r"<table\b.*?</table>", html, re.DOTALL):
        head, _, body = table.partition("</thead>")
        yield (
            len(re.findall(r"<t[hd]\b", head)),
            [len(re.findall(r"<t[hd]\b", row)) for row in re.findall(r"<tr>.*?</tr>", body, re.DOTALL)],
        )


def test_every_table_of_results_has_as_many_cells_as_heads(client: Client, tracks: list[Track]) -> None:
    for track in tracks:
        boards = [f"epsilon={budget:g}" for budget in track.run_budgets() if budget] or [""]
        runs = list(Run.objects.filter(submission__track=track))
        first, second = (run.submission_id for run in runs[:2])
        for address in [
            *(f"/leaderboard/{track.slug}/?{board}" for board in [*boards, ""]),
            *(f"/leaderboard/{track.slug}/?{board}&more=1" for board in boards),
            *(f"/leaderboard/{track.slug}/?{board}&more=1&rank=none" for board in boards),
            f"/leaderboard/{track.slug}/compare/?method={first}&method={second}",
            *(f"/submissions/{run.submission_id}/" for run in runs),
            *(run.submission.team.get_absolute_url() for run in runs),
        ]:
            found = list(tables(client.get(address).text))
            # The page of an anonymous team has none.
            assert found or address.startswith("/teams/"), address
            for heads, rows in found:
                assert set(rows) <= {heads}, address


def test_the_result_that_ranks_comes_first() -> None:
    for key, kind in RANKINGS.items():
        track = Track(ranking=key)
        results = [column.key for column in columns_of(track, Shown.BOARD) if column.is_result]
        assert results[0] == kind.first


def test_docs_have_the_table() -> None:
    assert Path("docs/columns.md").read_text(encoding="utf-8") == catalog()
