"""Team, invitations, keys, files and notifications over the API: what a participant does on the pages."""

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.test import Client

from docvqa_site.accounts.models import ApiToken, Scope
from docvqa_site.accounts.services import create_token
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.models import Notification
from docvqa_site.submissions.models import SubmissionState
from docvqa_site.teams.models import Membership
from docvqa_site.uploads.models import UploadState
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.api.caller import Caller, codes
from tests.docvqa_site.factories import (
    make_artifact,
    make_key,
    make_run,
    make_submission,
    make_team,
    make_track,
    make_user,
    owner_of,
)
from tests.docvqa_site.submissions.drafts import make_private_track

pytestmark = pytest.mark.django_db


def caller(client, user, scope=Scope.MANAGE):
    api = Caller(client)
    api.headers = {"Authorization": f"Bearer {create_token(user, 'test', scope=scope)[1]}"}
    return api


@pytest.fixture
def team():
    return make_team(name="Engines")


@pytest.fixture
def owner(client, team):
    return caller(client, owner_of(team))


@pytest.fixture
def member(team):
    return Membership.objects.create(team=team, user=make_user("ben@example.org"))


@pytest.fixture
def as_member(client, member):
    return caller(client, member.user)


def rejected(api, method, path, body=None):
    response = api(method, path, body)
    return response.status_code, *codes(response)


class TestTeam:
    def test_it_is_created_changed_and_left(self, client):
        api = caller(client, make_user("ada@example.org"))
        assert rejected(api, "GET", "team") == (403, "E_REQUEST_TEAM")
        made = api.post("team", {"name": "Engines", "affiliation": "Sea", "country": "CA"})
        assert made["country"] == "CA"
        assert (made["role"], [one["email"] for one in made["members"]]) == ("owner", ["ada@example.org"])
        changed = api("PATCH", "team", {"website": "engines.example.org"}).json()
        assert (changed["affiliation"], changed["website"]) == ("Sea", "https://engines.example.org")
        assert rejected(api, "POST", "team", {"name": "Other"}) == (409, "E_TEAM_MEMBER")
        assert api("POST", "team/leave").status_code == 204
        assert rejected(api, "POST", "team/leave") == (403, "E_REQUEST_TEAM")

    def test_a_name_that_looks_like_anothers_is_rejected(self, client, team):
        api = caller(client, make_user())
        assert rejected(api, "POST", "team", {"name": "ENGINES"}) == (422, "E_REQUEST_INVALID")

    def test_its_name_stays(self, owner):
        assert rejected(owner, "PATCH", "team", {"name": "Else"}) == (422, "E_REQUEST_INVALID")

    def test_an_owner_hands_over_and_removes(self, owner, as_member, member, team):
        assert owner.post(f"team/members/{member.pk}/hand-over")["role"] == "member"
        first = team.memberships.exclude(pk=member.pk).get()
        assert rejected(owner, "DELETE", f"team/members/{member.pk}") == (403, "E_TEAM_OWNER")
        assert as_member("DELETE", f"team/members/{first.pk}").status_code == 204
        assert [one["id"] for one in as_member.get("team")["members"]] == [member.pk]

    def test_a_member_changes_nothing_of_the_team(self, as_member, team):
        boss = team.memberships.get(role="owner").pk
        for call in (
            ("PATCH", "team", {"affiliation": "Mine"}),
            ("DELETE", f"team/members/{boss}"),
            ("POST", f"team/members/{boss}/hand-over"),
            ("GET", "team/invitations"),
            ("POST", "team/invitations", {"email": "x@example.org"}),
            ("DELETE", "team/invitations/1"),
            ("DELETE", f"keys/{make_key(team).public_key}"),
        ):
            assert rejected(as_member, *call) == (403, "E_TEAM_OWNER"), call

    def test_members_of_other_teams_are_nobody(self, owner):
        other = make_team().memberships.get()
        for call in (("DELETE", f"team/members/{other.pk}"), ("POST", f"team/members/{other.pk}/hand-over")):
            assert rejected(owner, *call) == (409, "E_TEAM_MEMBER")
        assert Membership.objects.filter(pk=other.pk).exists()


class TestInvitations:
    @pytest.fixture
    def guest(self):
        guest = make_user("guest@example.org")
        EmailAddress.objects.create(user=guest, email=guest.email, primary=True, verified=True)
        return guest

    def test_one_is_sent_and_accepted(self, client, owner, guest, team):
        sent = owner.post("team/invitations", {"email": "guest@example.org"})
        assert mail.outbox[0].to == ["guest@example.org"]
        assert owner.get("team/invitations?limit=1")["items"] == [sent]
        api = caller(client, guest)
        (received,) = api.get("invitations")["items"]
        assert (received["id"], received["team"]) == (sent["id"], "Engines")
        assert api.post(f"invitations/{sent['id']}/accept")["role"] == "member"
        assert owner.get("team/invitations")["count"] == 0

    def test_a_revoked_one_is_gone(self, client, owner, guest):
        sent = owner.post("team/invitations", {"email": "guest@example.org"})
        assert owner("DELETE", f"team/invitations/{sent['id']}").status_code == 204
        assert owner("DELETE", f"team/invitations/{sent['id']}").status_code == 404
        api = caller(client, guest)
        assert api.get("invitations")["count"] == 0
        assert api("POST", f"invitations/{sent['id']}/accept").status_code == 404

    def test_one_to_somebody_else_is_not_found(self, client, owner):
        sent = owner.post("team/invitations", {"email": "guest@example.org"})
        thief = caller(client, make_user("thief@example.org"))
        assert thief("POST", f"invitations/{sent['id']}/accept").status_code == 404
        other = caller(client, owner_of(make_team()))
        assert other("DELETE", f"team/invitations/{sent['id']}").status_code == 404

    def test_an_address_that_is_none_is_rejected(self, owner):
        assert rejected(owner, "POST", "team/invitations", {"email": "nobody"}) == (422, "E_REQUEST_INVALID")


class TestScopes:
    CHANGES = (
        ("POST", "team/leave"),
        ("PATCH", "team", {"affiliation": "Mine"}),
        ("POST", "team/invitations", {"email": "x@example.org"}),
        ("PATCH", "me", {"name": "Eve"}),
    )

    def test_a_session_revokes_no_key(self, client, team):
        key = make_key(team)
        client.force_login(owner_of(team))
        assert rejected(Caller(client), "DELETE", f"keys/{key.public_key}") == (
            403,
            "E_REQUEST_REAUTHENTICATE",
        )

    def test_a_session_needs_its_csrf_token(self, team):
        client = Client(enforce_csrf_checks=True)
        client.force_login(owner_of(team))
        for call in self.CHANGES:
            assert rejected(Caller(client), *call) == (401, "E_REQUEST_SIGN_IN"), call

    def test_any_token_ends_itself(self, client, team):
        api = caller(client, owner_of(team), Scope.READ)
        assert api("DELETE", "me/token").status_code == 204
        assert api("GET", "me").status_code == 401
        assert ApiToken.objects.get().revoked_at is not None

    def test_a_token_to_read_gets_no_address_of_a_file(self, client, team):
        artifact = make_artifact(make_run(make_submission(team)), ArtifactKind.CHECKPOINT)
        api = caller(client, owner_of(team), Scope.READ)
        path = f"submissions/{artifact.submission_id}/artifacts"
        assert len(api.get(path)) == 1
        assert rejected(api, "POST", f"{path}/{artifact.pk}/download-url") == (403, "E_REQUEST_SCOPE")


def test_an_owner_revokes_a_key(owner, team):
    key = make_key(team)
    assert owner("DELETE", f"keys/{key.public_key}").status_code == 204
    assert owner("DELETE", f"keys/{key.public_key}").status_code == 404
    assert owner("DELETE", f"keys/{make_key(make_team()).public_key}").status_code == 404
    assert owner.get("keys") == []


def test_own_files_are_listed_and_fetched(client, owner, team):
    run = make_run(make_submission(team))
    artifact = make_artifact(run, ArtifactKind.CHECKPOINT, b"weights", "model.safetensors")
    path = f"submissions/{run.submission_id}/artifacts"
    (listed,) = owner.get(path)
    assert (listed["filename"], listed["size_bytes"], listed["run"]) == ("model.safetensors", 7, str(run.pk))
    url = owner.post(f"{path}/{artifact.pk}/download-url")["url"]
    assert b"".join(client.get(url).streaming_content) == b"weights"
    artifact.upload.state = UploadState.EXPIRED
    artifact.upload.save()
    assert owner.get(path)[0]["state"] == "expired"
    assert rejected(owner, "POST", f"{path}/{artifact.pk}/download-url") == (422, "E_ARTIFACT_MISSING")


def test_files_of_others_are_not_found(owner, team):
    foreign = make_artifact(make_run(), ArtifactKind.CHECKPOINT)
    own = make_run(make_submission(team)).submission_id
    assert owner("GET", f"submissions/{foreign.submission_id}/artifacts").status_code == 404
    for submission in (foreign.submission_id, own):
        path = f"submissions/{submission}/artifacts/{foreign.pk}/download-url"
        assert owner("POST", path).status_code == 404


def test_a_submitted_proof_is_revised(owner, team):
    submission = make_submission(team, make_private_track(), state=SubmissionState.SUBMITTED)
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF, b"# Proof", "proof.md")
    owner.upload(str(submission.pk), "privacy_proof", b"# Better", filename="proof.md")
    owner.post(f"submissions/{submission.pk}/revision", {"note": "The bound is tighter."})
    listed = owner.get(f"submissions/{submission.pk}/artifacts")
    assert [(one["version"], one["superseded_at"] is None) for one in listed] == [(1, False), (2, True)]


def test_the_quota_is_that_of_the_pages(owner):
    track = make_track(submissions_per_day=3)
    assert owner.get(f"tracks/{track.slug}/quota") == {"limit": 3, "used": 0, "left": 3, "next_slot": None}
    assert owner("GET", "tracks/none/quota").status_code == 404


def test_a_name_is_changed_and_one_that_cannot_be_seen_is_not(owner, team):
    owner("PATCH", "me", {"orcid": "https://orcid.org/0000-0002-1825-0097", "shows_orcid": True})
    changed = owner("PATCH", "me", {"name": "Countess"}).json()
    assert (changed["name"], changed["orcid"], changed["shows_orcid"]) == (
        "Countess",
        "0000-0002-1825-0097",
        True,
    )
    assert rejected(owner, "PATCH", "me", {"orcid": "0000-0002-1825-0098"}) == (422, "E_REQUEST_INVALID")
    assert rejected(owner, "PATCH", "me", {"name": "\u200b"}) == (422, "E_REQUEST_INVALID")


class TestNotifications:
    def test_they_are_listed_in_parts_and_marked(self, client):
        user = make_user()
        numbers = [
            Notification.objects.create(user=user, kind=Kind.RESULTS, subject="Scored").pk for _ in range(3)
        ]
        Notification.objects.create(user=make_user(), kind=Kind.RESULTS, subject="Of somebody else")
        api = caller(client, user, Scope.SUBMIT)
        page = api.get("notifications?limit=2")
        assert ([one["id"] for one in page["items"]], page["count"]) == (numbers[:0:-1], 3)
        assert api("POST", "notifications/read", {"until": numbers[1]}).status_code == 204
        assert (
            list(Notification.objects.filter(user=user, read_at=None).values_list("pk", flat=True))
            == numbers[2:]
        )
        api("POST", "notifications/read", {})
        assert Notification.objects.filter(read_at=None).count() == 1

    def test_mails_are_chosen(self, client):
        api = caller(client, make_user(), Scope.SUBMIT)
        assert api.get("notifications/mail")["kinds"] == api.get("notifications/mail")["possible"]
        chosen = api("PUT", "notifications/mail", {"kinds": ["results"]}).json()
        assert chosen["kinds"] == ["results", "security"]
        for kinds in (["operations"], ["nothing"]):
            assert rejected(api, "PUT", "notifications/mail", {"kinds": kinds}) == (422, "E_REQUEST_INVALID")
