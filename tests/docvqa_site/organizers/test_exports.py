import csv
import io
import json

import pytest
from django.test import Client

from docvqa_site.accounts.services import make_reviewer
from docvqa_site.audit.models import AuditEntry, personal, record
from docvqa_site.challenge.models import TeamRegistration
from docvqa_site.organizers.exports import cell
from docvqa_site.submissions.models import RunState, SubmissionState
from tests.docvqa_site.factories import (
    make_organizer,
    make_run,
    make_submission,
    make_team,
    make_track,
    make_user,
    sign_in_organizer,
)

pytestmark = pytest.mark.django_db

PERMISSIONS = ("change_track", "view_submission", "view_user", "view_proofreview", "view_auditentry")


@pytest.fixture
def organizer(client: Client):
    return sign_in_organizer(client, "organize", *PERMISSIONS)


def sent(client: Client, address: str) -> str:
    return client.get(address).getvalue().decode()


@pytest.mark.parametrize("name", ["people", "submissions", "registrations", "reviews", "audit"])
def test_a_table_is_exported_in_both_formats_and_recorded(client: Client, organizer, name) -> None:
    record(organizer, "team.invited", make_run(state=RunState.SCORED), email=personal("new@example.org"))
    rows = list(csv.DictReader(io.StringIO(sent(client, f"/organize/exports/{name}.csv"))))
    taken = AuditEntry.objects.get(action="export.taken")
    assert (taken.actor, taken.details) == (organizer, {"table": name, "format": "csv"})
    found = json.loads(sent(client, f"/organize/exports/{name}.json"))
    assert len(found) - len(rows) == (name == "audit")
    assert ("new@example.org" in str(rows)) == (name == "audit")


def test_people_are_exported_with_their_roles_and_teams_with_their_answers(client: Client, organizer) -> None:
    ada, track = make_user("ada@example.org"), make_track()
    make_reviewer(ada)
    found = json.loads(sent(client, "/organize/exports/people.json"))
    roles = {row["email"]: (row["reviewer"], row["organizer_of_all_tracks"]) for row in found}
    assert roles[ada.email] == (True, False)
    assert roles[organizer.email] == (False, False)
    answers = [["Which institution?", "Here"]]
    for one in (track, competed := make_track()):
        TeamRegistration.objects.create(team=make_team(), track=one, answers=answers, created_by=ada)
    (row,) = [
        row
        for row in json.loads(sent(client, "/organize/exports/registrations.json"))
        if row["track"] == track.slug
    ]
    assert (row["answers"], row["state"]) == (answers, "waiting")
    make_submission(make_team(organizer), competed, state=SubmissionState.SUBMITTED)
    assert competed.slug not in sent(client, "/organize/exports/registrations.json")


def test_an_organizer_who_competes_exports_only_own_actions(client: Client, organizer) -> None:
    make_run(state=RunState.SCORED)
    record(None, "run.scored", organizer)
    rival = json.loads(sent(client, "/organize/exports/audit.json"))
    assert "run.scored" in {row["action"] for row in rival}
    make_team(organizer)
    own = json.loads(sent(client, "/organize/exports/audit.json"))
    assert {row["actor"] for row in own} == {organizer.email}
    client.get("/admin/audit/auditentry/")


def test_no_text_of_a_participant_becomes_a_formula(client: Client, organizer) -> None:
    make_run(make_submission(state=SubmissionState.SUBMITTED, title='=HYPERLINK("x")'), state=RunState.SCORED)
    assert "'=HYPERLINK" in sent(client, "/organize/exports/submissions.csv")
    assert [cell(value) for value in ("@x", "-1", "＝1", -1, None, ["="])] == [
        "'@x",
        "'-1",
        "'＝1",
        -1,
        "",
        '["="]',
    ]


def test_drafts_and_tracks_in_which_one_competes_are_not_exported(client: Client, organizer) -> None:
    run = make_run(state=RunState.SCORED)
    make_run()
    assert [row["run"] for row in json.loads(sent(client, "/organize/exports/submissions.json"))] == [
        str(run.pk)
    ]
    make_submission(make_team(organizer), run.submission.track, state=SubmissionState.SUBMITTED)
    assert json.loads(sent(client, "/organize/exports/submissions.json")) == []


def test_the_participation_is_counted_per_track_and_month(client: Client, organizer) -> None:
    track, team = make_track(name="Bytes"), make_team()
    for state in (RunState.SCORED, RunState.REJECTED):
        make_run(make_submission(team, track, state=SubmissionState.SUBMITTED), state=state)
    (row,) = client.get("/organize/exports/").context["participation"]
    counted = [
        row[name] for name in ("track__name", "teams", "submissions", "runs_made", "scored", "rejected")
    ]
    assert counted == ["Bytes", 1, 2, 2, 1, 1]


@pytest.mark.parametrize("address", ["/organize/exports/", "/organize/exports/people.csv"])
def test_exports_take_no_post(client: Client, organizer, address) -> None:
    assert client.post(address).status_code == 405


def test_an_export_needs_its_table_and_its_permission(client: Client, organizer) -> None:
    assert client.get("/organize/exports/secrets.csv").status_code == 404
    assert client.get("/organize/exports/people.xml").status_code == 404
    client.force_login(make_organizer("organize"))
    assert client.get("/organize/exports/people.csv").status_code == 403
    assert not AuditEntry.objects.filter(action="export.taken").exists()
    client.force_login(make_organizer(*PERMISSIONS))
    assert client.get("/organize/exports/").status_code == 403
