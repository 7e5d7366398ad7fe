"""A snapshot is verified by Python alone, and whatever is changed in it is found."""

import hashlib
import json
import subprocess
import sys
from io import StringIO

import pytest
import yaml
from django.core.management import CommandError, call_command

from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET, FEWEST_BYTES
from docvqa_site.submissions.models import RunState, SubmissionState
from tests.docvqa_site.factories import make_phase, make_run, make_submission, make_track

pytestmark = pytest.mark.django_db


def add(track, title, budget=None, **fields):
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED, title=title)
    return make_run(submission, state=RunState.SCORED, budget=budget, **fields)


@pytest.fixture
def snapshot(tmp_path):
    bytes_track = make_track(FEWEST_BYTES, slug="bytes", anls_threshold=0.8242, data_sha256="5ec7" * 16)
    add(bytes_track, "Small", bytes_total=10, anls=0.82421234, anls_low=0.8111222, anls_high=0.83)
    add(bytes_track, "Big", bytes_total=30)
    add(bytes_track, "Weak", bytes_total=5, anls=0.82419)
    add(bytes_track, "Forged", bytes_total=4, anls=0.8, disqualified_because="The log is forged.")
    private = make_track(BEST_ANLS_AT_BUDGET, slug="private", budgets=[4])
    add(private, "Good", 4.0, epsilon=3.9, anls=0.61234)
    add(private, "Later", 4.0, epsilon=3.9, anls=0.61239)
    add(private, "Over", 4.0, epsilon=4.1)
    folder = tmp_path / "snapshot"
    call_command("freeze", str(folder), name="2026-11", stdout=StringIO())
    return folder


def verify(folder):
    """Run the snapshot's own program without the site's packages."""
    command = [sys.executable, "-I", "-S", str(folder / "verify.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout


def change(folder, edit):
    """Change the rows and the hashes with them, as a forger would."""
    file = folder / "snapshot.json"
    content = json.loads(file.read_text())
    edit({track["slug"]: track["boards"][0]["rows"] for track in content["tracks"]})
    file.write_text(json.dumps(content))
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    sums = folder / "SHA256SUMS"
    lines = [line for line in sums.read_text().splitlines() if not line.endswith("snapshot.json")]
    sums.write_text("\n".join([*lines, f"{digest}  snapshot.json"]) + "\n")


def test_it_has_rows_rules_versions_and_a_citation_and_verifies_itself(snapshot):
    assert verify(snapshot)[0] == 0
    content = json.loads((snapshot / "snapshot.json").read_text())
    assert content["name"] == "2026-11"
    assert content["evaluator_version"]
    first = content["tracks"][0]
    assert first["rules"]["anls_threshold"] == 0.8242
    assert [(row["method"], row["rank"]) for row in first["boards"][0]["rows"]] == [
        ("Small", 1),
        ("Big", 2),
        ("Weak", None),
        ("Forged", None),
    ]
    citation = yaml.safe_load((snapshot / "CITATION.cff").read_text())
    assert (citation["version"], citation["type"]) == ("2026-11", "dataset")
    assert (snapshot / "private.csv").read_text().startswith('"track"')


def test_it_has_no_digit_beyond_those_on_the_boards_and_no_secret(snapshot):
    for file in snapshot.iterdir():
        text = file.read_text()
        assert "0.82421" not in text
        assert "0.81112" not in text
        assert "5ec75ec7" not in text


def test_a_changed_a_missing_and_an_added_file_are_found(snapshot):
    (snapshot / "bytes.csv").write_text("changed")
    (snapshot / "README.md").unlink()
    (snapshot / "other.txt").write_text("added")
    status, output = verify(snapshot)
    assert status == 1
    assert "bytes.csv does not match its SHA-256" in output
    assert "README.md is missing" in output
    assert "other.txt is not listed" in output


def swap(rows):
    rows["bytes"][0]["results"]["bytes_total"] = 40


def promote(rows):
    rows["private"][2]["rank"] = 3


def skip(rows):
    rows["bytes"][1]["rank"] = 3


def overtake(rows):
    first, second = rows["private"][:2]
    first["submitted_at"], second["submitted_at"] = second["submitted_at"], first["submitted_at"]


def reject(rows):
    rows["private"][0]["status"] = "rejected"


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (swap, "bytes: rank 1 is worse than the one after it"),
        (promote, "private, ε = 4: Over has a rank, against the rules"),
        (skip, "bytes: the ranks are not 1, 2, 3 and so on"),
        (overtake, "private, ε = 4: rank 1 is worse than the one after it"),
        (reject, "private, ε = 4: Good has a rank, against the rules"),
    ],
)
def test_ranks_that_do_not_follow_the_rules_are_found(snapshot, edit, problem):
    change(snapshot, edit)
    assert problem in verify(snapshot)[1]


def test_an_existing_folder_is_left_alone(snapshot):
    with pytest.raises(CommandError, match="exists"):
        call_command("freeze", str(snapshot))


def test_of_one_phase_it_has_its_rows_ranked_among_themselves(tmp_path):
    track = make_track(slug="track", anls_threshold=0.5, closes_at="2030-01-01T00:00Z")
    final = make_phase(track, name="Final", starts_at="2030-01-01T00:00Z")
    for number, phase in enumerate([track.phases.first(), final, track.phases.first(), final]):
        submission = make_submission(track=track, state="submitted", title=f"Method {number}", phase=phase)
        make_run(submission, state="scored", bytes_total=number)
    make_track(slug="other")
    call_command("freeze", str(tmp_path / "final"), phase="Final", stdout=StringIO())
    assert verify(tmp_path / "final")[0] == 0
    (frozen,) = json.loads((tmp_path / "final" / "snapshot.json").read_text())["tracks"]
    rows = [(row["rank"], row["method"], row["phase"]) for row in frozen["boards"][0]["rows"]]
    assert rows == [(1, "Method 1", "Final"), (2, "Method 3", "Final")]
    assert [phase["name"] for phase in frozen["phases"]] == ["Submissions", "Final"]
    with pytest.raises(CommandError, match="No track has a phase"):
        call_command("freeze", str(tmp_path / "none"), phase="Nowhere", stdout=StringIO())
    assert not (tmp_path / "none").exists()
