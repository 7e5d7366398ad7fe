"""Ranks that need an examination: the site requests it, pages and data say what is missing, and nothing is frozen."""

import csv
import hashlib
import io
import json
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from docvqa_site.audit.models import AuditEntry
from docvqa_site.boards.required_examinations import request_missing
from docvqa_site.challenge.models import Track
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET, FEWEST_BYTES
from docvqa_site.evaluation.examining import requests
from docvqa_site.evaluation.models import Examination
from docvqa_site.submissions.models import Run
from evaluator.messages.examinations import CodeIdentity, Comparison, Report, RerunFindings, Scores
from evaluator.messages.jobs import ArtifactKind, TrustLevel
from tests.docvqa_site.factories import (
    make_artifact,
    make_organizer,
    make_phase,
    make_run,
    make_submission,
    make_team,
    make_track,
    owner_of,
)

pytestmark = pytest.mark.django_db

IDENTITY = CodeIdentity(kit_version="1", code_sha256="c" * 64, settings_sha256="5" * 64)
SCORES = Scores(anls=0.5, accuracy=0.4, bytes_total=100)


@pytest.fixture
def track() -> Track:
    """A track whose first two ranks need a rerun, with runs from 1 to 4."""
    track = make_track(FEWEST_BYTES, slug="track", anls_threshold=0.5, examined_ranks=2)
    for number in range(1, 5):
        make_listed_run(track, number)
    return track


def make_listed_run(track: Track, number: int, *, has_settings: bool = True, **fields) -> Run:
    submission = make_submission(track=track, state="submitted", title=f"Method {number}", **fields)
    run = make_run(submission, state="scored", bytes_total=number)
    if has_settings:
        make_artifact(run, ArtifactKind.SETTINGS)
    return run


def rerun_of(difference: float) -> Report:
    comparison = Comparison(
        name="anls", submitted=0.5, repeated=0.5 - difference, allowed=0.1, basis="three repeats"
    )
    findings = RerunFindings(submitted=SCORES, repeats=[SCORES] * 3, comparisons=[comparison])
    return Report(seconds=1, identity=IDENTITY, findings=findings)


def end(title: str, *, passes: bool) -> None:
    """Let a machine take the examination of this method, and end it."""
    examination = requests.take(Examination.objects.get(run__submission__title=title, state="queued"))
    assert examination is not None
    requests.conclude(examination, rerun_of(0.0 if passes else 0.3))


def requested() -> list[str]:
    examinations = Examination.objects.filter(state="queued").order_by("run__submission__title")
    return list(examinations.values_list("run__submission__title", flat=True))


def freeze(folder: Path, **options: str) -> None:
    call_command("freeze", str(folder), stdout=StringIO(), **options)


def rows(client: Client) -> dict[str, dict[str, str]]:
    lines = csv.DictReader(io.StringIO(client.get("/leaderboard/track.csv").text))
    return {line["method"]: line for line in lines}


def test_the_site_requests_the_examinations_of_the_first_ranks_once(track: Track) -> None:
    assert request_missing() == 2
    assert requested() == ["Method 1", "Method 2"]
    assert {one.trust_level for one in Examination.objects.all()} == {TrustLevel.RERUN}
    assert AuditEntry.objects.filter(action="examination.queued", actor=None).count() == 2
    assert request_missing() == 0


def test_pages_and_data_say_which_ranks_are_pending(client: Client, track: Track) -> None:
    board = client.get("/leaderboard/track/").text
    assert "rank 1, rerun (L3) pending" in board
    assert "rank 2, rerun (L3) pending" in board
    assert board.count("pending") == 2
    assert [(row["rank"], row["pending"]) for row in rows(client).values()] == [
        ("1", "3"),
        ("2", "3"),
        ("3", ""),
        ("4", ""),
    ]
    api = client.get("/api/v1/leaderboards/track").json()
    assert [row["pending"] for row in api["boards"][0]["rows"]] == [3, 3, None, None]
    submission = Run.objects.get(bytes_total=1).submission
    page = client.get(submission.get_absolute_url()).text
    assert "rerun (L3) pending" in page
    assert "the rank is final once the run has passed" in page
    printed = StringIO()
    call_command("leaderboard", "track", stdout=printed)
    assert printed.getvalue().count("scored, rerun (L3) pending") == 2
    client.force_login(owner_of(submission.team))
    assert "rerun (L3) pending" in client.get("/submissions/").text
    assert "First 2 ranks: a rerun (L3)" in client.get("/tracks/track/").text


def test_a_rank_is_final_once_the_examination_has_passed(client: Client, track: Track) -> None:
    request_missing()
    end("Method 1", passes=True)
    assert rows(client)["Method 1"]["pending"] == ""
    assert "rank 1," not in client.get("/leaderboard/track/").text


def test_a_failed_examination_takes_the_rank_and_the_next_run_is_examined(
    client: Client, track: Track
) -> None:
    request_missing()
    end("Method 1", passes=False)
    failed = rows(client)["Method 1"]
    assert (failed["rank"], failed["pending"]) == ("", "")
    assert failed["reason"].startswith("it failed the rerun (L3): Trained ")
    assert "failed the rerun (L3)" in client.get("/leaderboard/track/").text
    assert rows(client)["Method 2"]["rank"] == "1"
    assert request_missing() == 1
    assert requested() == ["Method 2", "Method 3"]


def test_a_later_examination_that_passes_gives_the_rank_back(client: Client, track: Track) -> None:
    request_missing()
    end("Method 1", passes=False)
    requests.request(Run.objects.get(bytes_total=1), TrustLevel.RERUN, by=None)
    end("Method 1", passes=True)
    assert (rows(client)["Method 1"]["rank"], rows(client)["Method 1"]["pending"]) == ("1", "")


def test_a_broken_examination_is_left_to_the_organizers(client: Client, track: Track) -> None:
    request_missing()
    examination = requests.take(Examination.objects.get(run__submission__title="Method 2"))
    assert examination is not None
    requests.break_off(examination, "no data")
    assert request_missing() == 0
    client.force_login(make_organizer("organize", "view_submission"))
    desk = client.get("/organize/").text
    assert "Ranks waiting for an examination" in desk
    assert "rank 2 in" in desk
    assert desk.index("rerun (L3), broken") < desk.index("rerun (L3), queued")


def test_who_competes_sees_nothing_of_the_track_at_the_desk(client: Client, track: Track) -> None:
    organizer = make_organizer("organize", "view_submission")
    make_submission(make_team(organizer), track, state="submitted")
    client.force_login(organizer)
    assert "Ranks waiting for an examination" not in client.get("/organize/").text


def test_a_run_without_the_files_is_not_requested_and_the_desk_says_what_it_lacks(
    client: Client, track: Track
) -> None:
    make_listed_run(track, 0, has_settings=False)
    request_missing()
    assert requested() == ["Method 1"]
    client.force_login(make_organizer("organize", "view_submission"))
    assert "can&#x27;t be requested: the run has no settings" in client.get("/organize/").text


def test_nothing_is_frozen_while_an_examination_is_missing(track: Track, tmp_path: Path) -> None:
    request_missing()
    with pytest.raises(CommandError) as error:
        freeze(tmp_path / "early")
    text = str(error.value)
    assert text.count("E_EXAMINATION_PENDING") == 2
    assert f"{track}, rank 1: Method 1 of " in text
    assert "found: queued" in text
    assert not (tmp_path / "early").exists()
    for title in ("Method 1", "Method 2"):
        end(title, passes=True)
    freeze(tmp_path / "final")
    assert verify(tmp_path / "final") == (0, "All files are unchanged, and the ranks follow the rules.\n")


def test_a_frozen_rank_without_its_examination_is_found(track: Track, tmp_path: Path) -> None:
    request_missing()
    for title in ("Method 1", "Method 2"):
        end(title, passes=True)
    freeze(tmp_path / "final")
    forge(tmp_path / "final")
    assert "Method 1 has rank 1 without an examination of level 3" in verify(tmp_path / "final")[1]


def test_a_phase_counts_its_own_runs(client: Client, track: Track, tmp_path: Path) -> None:
    Track.objects.get().phases.update(ends_at="2030-01-01T00:00Z", examined_ranks=0)
    final = make_phase(track, name="Final", starts_at="2030-01-01T00:00Z", examined_ranks=1)
    make_listed_run(track, 7, phase=final)
    make_listed_run(track, 8, phase=final)
    found = rows(client)
    assert (found["Method 7"]["rank"], found["Method 7"]["pending"]) == ("5", "3")
    assert {row["pending"] for method, row in found.items() if method != "Method 7"} == {""}
    freeze(tmp_path / "first", phase="Submissions")
    with pytest.raises(CommandError, match="Method 7"):
        freeze(tmp_path / "second", phase="Final")
    request_missing()
    end("Method 7", passes=True)
    freeze(tmp_path / "second", phase="Final")
    assert verify(tmp_path / "second")[0] == 0


def test_every_budget_has_ranks_of_its_own() -> None:
    track = make_track(BEST_ANLS_AT_BUDGET, budgets=[1, 4], examined_ranks=1, examined_level=2)
    for budget in (1.0, 4.0):
        run = make_run(
            make_submission(track=track, state="submitted"), state="scored", budget=budget, epsilon=0.9
        )
        for kind in (*track.kind.run_artifacts, *track.kind.optional_artifacts):
            make_artifact(run, kind)
    assert request_missing() == 2
    assert {one.trust_level for one in Examination.objects.all()} == {TrustLevel.REPLAYED}


def forge(folder: Path) -> None:
    """Change a level in the snapshot, and its hash with it."""
    file, sums = folder / "snapshot.json", folder / "SHA256SUMS"
    content = json.loads(file.read_text())
    content["tracks"][0]["boards"][0]["rows"][0]["results"]["trust_level"] = 0
    file.write_text(json.dumps(content))
    others = [line for line in sums.read_text().splitlines() if not line.endswith(file.name)]
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    sums.write_text("\n".join([*others, f"{digest}  {file.name}"]) + "\n")


def verify(folder: Path) -> tuple[int, str]:
    command = [sys.executable, "-I", "-S", str(folder / "verify.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout
