"""Run tokens and signing keys over the API, as `pfl token` and `pfl key register` request them."""

import pytest
from django.utils import timezone

from docvqa_site.submissions import tokens
from docvqa_site.submissions.models import RunToken
from docvqa_site.teams.keys import revoke_key
from docvqa_site.teams.models import Membership
from evaluator.messages.results import RunResults
from tests.docvqa_site.api.caller import Caller, codes
from tests.docvqa_site.factories import (
    make_epsilons,
    make_key,
    make_run,
    make_submission,
    make_team,
    make_token,
    make_track,
    make_user,
)
from tests.docvqa_site.submissions.drafts import make_private_track
from tests.docvqa_site.teams.test_team_keys import new_key

pytestmark = pytest.mark.django_db

CALLS = [
    ("GET", "run-tokens", None),
    ("POST", "run-tokens", {"track": "track-2"}),
    ("PATCH", "run-tokens/a-token", {"explanation": "The disk was full."}),
    ("GET", "keys", None),
    ("POST", "keys", {"public_key": "0" * 64, "name": ""}),
]


@pytest.fixture
def team():
    return make_team()


@pytest.fixture
def api(client, team):
    return Caller(client, team.memberships.get().user)


class TestTokens:
    def test_a_token_is_issued_and_listed(self, api, team):
        make_private_track(slug="track-2")
        issued = api.post("run-tokens", {"track": "track-2"})
        assert set(issued) == {"token", "track", "issued_at", "run", "challenged_at", "explanation"}
        assert (issued["track"], issued["run"]) == ("track-2", None)
        assert RunToken.objects.get().team == team
        assert api.get("run-tokens") == {"items": [issued], "count": 1}

    def test_the_list_names_the_run_of_each_and_has_only_those_of_the_team(
        self, api, team, django_assert_max_num_queries
    ):
        track = make_private_track()
        run = make_run(make_submission(team, track), budget=1.0)
        used = make_token(team, track, run=run)
        for _ in range(10):
            make_token(make_team(), track)
            make_token(team, track)
        with django_assert_max_num_queries(6):
            listed = api.get("run-tokens")["items"]
        assert len(listed) == 11
        assert next(entry for entry in listed if entry["token"] == used.token)["run"] == str(run.pk)

    def test_a_token_that_may_not_be_issued_is_rejected(self, api, monkeypatch):
        make_track(slug="track-1")
        response = api("POST", "run-tokens", {"track": "track-1"})
        assert (response.status_code, codes(response)) == (409, ["E_RUN_TOKEN"])
        response = api("POST", "run-tokens", {"track": "track-9"})
        assert (response.status_code, codes(response)) == (404, ["E_REQUEST_NOT_FOUND"])
        monkeypatch.setattr(tokens, "MAX_OPEN_TOKENS", 0)
        make_private_track(slug="track-2")
        response = api("POST", "run-tokens", {"track": "track-2"})
        assert (response.status_code, codes(response)) == (409, ["E_RUN_TOKEN"])
        assert not RunToken.objects.exists()


class TestTraining:
    """The token of a training that names itself, as `pfl train` does."""

    NAMES = [digit * 32 for digit in "abc"]

    def taken(self, api, name):
        return api.post("run-tokens", {"track": "track-2", "training": name})["token"]

    def test_an_unused_token_is_taken_before_a_new_one_is_issued(self, api):
        make_private_track(slug="track-2")
        older, newest = (api.post("run-tokens", {"track": "track-2"})["token"] for _ in range(2))
        assert [self.taken(api, name) for name in self.NAMES[:2]] == [newest, older]
        assert RunToken.objects.count() == 2
        assert self.taken(api, self.NAMES[2]) not in (older, newest)

    def test_the_same_training_gets_the_same_token_as_long_as_it_is_unused(self, api):
        make_private_track(slug="track-2")
        first = self.taken(api, self.NAMES[0])
        assert self.taken(api, self.NAMES[0]) == first
        assert self.taken(api, self.NAMES[1]) != first
        token = RunToken.objects.get(token=first)
        token.record_sha256, token.challenge, token.challenged_at = "5" * 64, "6" * 64, timezone.now()
        token.save()
        assert self.taken(api, self.NAMES[0]) != first

    def test_tokens_of_other_tracks_teams_and_members_are_left_alone(self, api, team):
        track = make_private_track(slug="track-2")
        other = make_user()
        Membership.objects.create(team=team, user=other)
        left = [
            make_token(team, make_private_track()),
            make_token(make_team(), track),
            make_token(team, track, issued_to=other),
            make_token(team, track, record_sha256="5" * 64),
        ]
        assert self.taken(api, self.NAMES[0]) not in [token.token for token in left]

    @pytest.mark.parametrize("name", ["x" * 32, "0" * 31, "0" * 33])
    def test_a_name_of_another_form_is_rejected(self, api, name):
        make_private_track(slug="track-2")
        response = api("POST", "run-tokens", {"track": "track-2", "training": name})
        assert (response.status_code, codes(response)) == (422, ["E_REQUEST_INVALID"])


class TestExplaining:
    def test_a_team_explains_an_unresolved_challenge_and_reads_it_in_the_list(self, api, team):
        lost = make_token(team, make_private_track(), record_sha256="5" * 64)
        answer = api("PATCH", f"run-tokens/{lost.token}", {"explanation": "The disk was full."}).json()
        assert answer["explanation"] == "The disk was full."
        assert api.get("run-tokens")["items"] == [answer]

    def test_nothing_else_is_explained(self, api, team):
        track = make_private_track()
        run = make_run(make_submission(team, track), budget=1.0)
        for token in (make_token(team, track), make_token(team, track, run=run)):
            response = api("PATCH", f"run-tokens/{token.token}", {"explanation": "Why not?"})
            assert (response.status_code, codes(response)) == (409, ["E_RUN_TOKEN"])
        foreign = make_token(make_team(), track, record_sha256="5" * 64)
        response = api("PATCH", f"run-tokens/{foreign.token}", {"explanation": "Mine."})
        assert (response.status_code, codes(response)) == (404, ["E_REQUEST_NOT_FOUND"])

    def test_an_explanation_has_an_end(self, api, team):
        lost = make_token(team, make_private_track(), record_sha256="5" * 64)
        response = api("PATCH", f"run-tokens/{lost.token}", {"explanation": "x" * 1001})
        assert (response.status_code, codes(response)) == (422, ["E_REQUEST_INVALID"])


class TestKeys:
    def test_a_key_is_registered_once(self, api, team):
        body = {"public_key": new_key(), "name": "laptop"}
        registered = api.post("keys", body)
        assert set(registered) == {"public_key", "name", "created_at"}
        assert api.post("keys", {**body, "name": "again"}) == registered
        assert api.get("keys") == [registered]
        assert team.keys.get().added_by == team.memberships.get().user

    def test_the_list_has_the_current_keys_of_the_team(self, api, team):
        revoked, _ = make_key(team), make_key(make_team())
        revoke_key(revoked, by=revoked.added_by)
        assert api.get("keys") == []

    def test_a_key_that_the_team_may_not_have_is_rejected(self, api, team):
        revoked = make_key(team)
        revoke_key(revoked, by=revoked.added_by)
        for public_key in (make_key(make_team()).public_key, revoked.public_key):
            response = api("POST", "keys", {"public_key": public_key, "name": ""})
            assert (response.status_code, codes(response)) == (409, ["E_TEAM_KEY"])

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            ({"public_key": "abc"}, "E_SIGNING_KEY"),
            ({"public_key": "x" * 64}, "E_SIGNING_KEY"),
            ({"public_key": ""}, "E_REQUEST_INVALID"),
            ({"public_key": "0" * 10_000}, "E_REQUEST_INVALID"),
            ({"public_key": None}, "E_REQUEST_INVALID"),
            ({"name": "x" * 81}, "E_REQUEST_INVALID"),
            ({"name": "a\0b"}, "E_REQUEST_INVALID"),
            ({"team": "other"}, "E_REQUEST_INVALID"),
        ],
    )
    def test_what_is_not_valid_is_rejected(self, api, team, change, code):
        response = api("POST", "keys", {"public_key": new_key(), "name": "laptop", **change})
        assert (response.status_code, codes(response)) == (422, [code])
        assert not team.keys.exists()


class TestAccess:
    @pytest.mark.parametrize("call", CALLS)
    def test_nobody_without_a_token_or_a_team(self, client, call):
        response = Caller(client)(*call)
        assert (response.status_code, codes(response)) == (401, ["E_REQUEST_SIGN_IN"])
        response = Caller(client, make_user())(*call)
        assert (response.status_code, codes(response)) == (403, ["E_REQUEST_TEAM"])

    @pytest.mark.parametrize("path", ["run-tokens", "keys"])
    @pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
    def test_nothing_but_reading_and_adding(self, api, path, method):
        assert api(method, path).status_code == 405


def test_the_team_reads_the_checks_of_a_run_in_full(api, team):
    submission = make_submission(team, make_private_track(), state="submitted")
    found = {
        "id": "record.providers",
        "status": "flagged",
        "expected": "17",
        "found": "18",
        "where": "round 3",
    }
    made = make_run(
        submission,
        state="scored",
        budget=4.0,
        checks=[found],
        epsilon=3.9,
        epsilons=make_epsilons(3.9, 3.1),
        joint_epsilon=6.5,
        joint_runs=2,
    )
    (run,) = api.get(f"submissions/{submission.pk}")["runs"]
    assert run["results"]["checks"] == [found]
    assert RunResults.model_validate(run["results"]) == made.results
