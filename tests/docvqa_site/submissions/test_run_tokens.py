"""Run tokens: who gets them, how many, and where they are listed. What they are used for: see evaluation."""

from html import unescape

import pytest
from django.urls import reverse

from docvqa_site.audit.models import AuditEntry
from docvqa_site.submissions import tokens
from docvqa_site.submissions.models import RunToken
from evaluator.errors import ProblemError
from tests.docvqa_site.factories import (
    make_run,
    make_submission,
    make_team,
    make_token,
    make_track,
    make_user,
)
from tests.docvqa_site.submissions.drafts import make_private_track
from tests.docvqa_site.submissions.test_submission_races import at_once

pytestmark = pytest.mark.django_db


@pytest.fixture
def team():
    return make_team()


@pytest.fixture
def owner(team):
    return team.memberships.get().user


def listing(client, user):
    client.force_login(user)
    return client.get(reverse("submissions:list")).content.decode()


class TestIssuing:
    def test_every_training_gets_a_token_of_its_own(self, team, owner):
        track = make_private_track()
        first, second = (tokens.issue_token(team, track, owner) for _ in range(2))
        assert first.token != second.token
        assert len(first.token) == 32
        assert (first.team, first.track, first.issued_to, first.run) == (team, track, owner, None)
        assert AuditEntry.objects.filter(action="run_token.issued", actor=owner).count() == 2

    def test_a_track_without_budgets_issues_none(self, team, owner):
        with pytest.raises(ProblemError) as error:
            tokens.issue_token(team, make_track(), owner)
        assert error.value.problem.code == "E_RUN_TOKEN"

    def test_a_team_has_so_many_unused_ones_at_most(self, team, owner, monkeypatch):
        monkeypatch.setattr(tokens, "MAX_OPEN_TOKENS", 2)
        track = make_private_track()
        submission = make_submission(team, track)
        make_token(team, track, run=make_run(submission, budget=1.0))
        make_token(make_team(), track)
        for _ in range(2):
            tokens.issue_token(team, track, owner)
        with pytest.raises(ProblemError) as error:
            tokens.issue_token(team, track, owner)
        assert (error.value.problem.code, error.value.problem.found) == ("E_RUN_TOKEN", "2")
        tokens.issue_token(team, make_private_track(), owner)

    @pytest.mark.django_db(transaction=True)
    def test_nor_when_it_asks_for_them_at_once(self, monkeypatch):
        monkeypatch.setattr(tokens, "MAX_OPEN_TOKENS", 2)
        team, track = make_team(), make_private_track()
        owner = team.memberships.get().user
        assert at_once(*[lambda: tokens.issue_token(team, track, owner)] * 5) == ["E_RUN_TOKEN"] * 3
        assert RunToken.objects.count() == 2


class TestListing:
    def test_the_team_sees_its_tokens_with_the_runs_that_use_them(self, client, team, owner):
        track = make_private_track()
        run = make_run(make_submission(team, track, title="FedDP"), budget=4.0)
        used, unused = make_token(team, track, run=run), make_token(team, track)
        foreign = make_token(make_team(), track)
        html = listing(client, owner)
        assert used.token in html
        assert unused.token in html
        assert "FedDP at ε\xa0=\xa04</a>" in html
        assert f"{track}: 2 issued, 1 used" in html
        assert foreign.token not in html

    def test_an_unresolved_challenge_leads_to_where_it_is_explained(self, client, team, owner):
        token = make_token(team, make_private_track(), record_sha256="5" * 64)
        assert f'href="{reverse("submissions:tokens")}#token-{token.pk}">Explain' in listing(client, owner)

    def test_nothing_is_said_of_tokens_before_there_are_any(self, client, owner):
        assert "Run tokens" not in listing(client, owner)

    def test_the_number_of_queries_does_not_grow(self, client, team, owner, django_assert_max_num_queries):
        track = make_private_track()
        for _ in range(20):
            make_token(team, track, run=make_run(make_submission(team, track), budget=1.0))
        client.force_login(owner)
        with django_assert_max_num_queries(14):
            client.get(reverse("submissions:list"))

    def test_organizers_read_and_never_edit(self, client, team):
        token = make_token(team, make_private_track())
        client.force_login(make_user(is_staff=True, is_superuser=True))
        assert token.token in client.get("/admin/submissions/runtoken/").content.decode()
        assert client.get("/admin/submissions/runtoken/add/").status_code == 403
        assert (
            client.post(f"/admin/submissions/runtoken/{token.pk}/delete/", {"post": "yes"}).status_code == 403
        )


class TestWhatBecameOfThem:
    """The page of all tokens, to which the list of submissions leads."""

    @pytest.fixture
    def track(self):
        return make_private_track()

    def page(self, client, owner):
        client.force_login(owner)
        return client.get(reverse("submissions:tokens")).content.decode()

    def test_each_token_says_what_became_of_it(self, client, team, owner, track):
        run = make_run(make_submission(team, track, title="FedDP"), budget=4.0)
        make_token(team, track, run=run)
        make_token(team, track, record_sha256="5" * 64)
        make_token(team, track, training="a" * 32)
        make_token(team, track)
        queued = make_submission(team, track, state="submitted", title="Waiting")
        waiting = make_run(queued, state="queued", budget=1.0)
        make_token(team, track, record_sha256="6" * 64, challenge=waiting.challenge)
        html = self.page(client, owner)
        for words in (
            "FedDP at ε\xa0=\xa04</a>: ε recomputed",
            "unresolved challenge: a record was uploaded",
            "reserved for a training run",
            "not used yet",
            "Waiting at ε\xa0=\xa01</a>: in evaluation",
        ):
            assert words in html
        assert html.count('name="explanation"') == 2
        counts = client.get(reverse("submissions:list")).content.decode()
        assert "5 issued, 1 used, 1 in evaluation, 1 unresolved challenge<" in counts
        assert counts.count("(not explained)") == 1

    def test_an_unresolved_challenge_is_explained_there_by_its_own_team_only(
        self, client, team, owner, track
    ):
        lost = make_token(team, track, record_sha256="5" * 64)
        address = reverse("submissions:explain_token", args=[lost.pk])
        client.force_login(owner)
        assert (
            "The disk was full."
            in client.post(address, {"explanation": "The disk was full."}, follow=True).text
        )
        client.force_login(make_team().memberships.get().user)
        assert client.post(address, {"explanation": "Not mine."}).status_code == 404
        assert RunToken.objects.get(pk=lost.pk).explanation == "The disk was full."

    def test_who_requested_it_releases_the_token_of_a_training_that_was_stopped(
        self, client, team, owner, track
    ):
        held = make_token(team, track, training="a" * 32, issued_to=owner)
        assert "Yes, release" in self.page(client, owner)
        address = reverse("submissions:release_token", args=[held.pk])
        assert "not used yet" in client.post(address, follow=True).text
        assert AuditEntry.objects.get(action="run_token.released").details == {"training": "a" * 32}
        assert tokens.take_token(team, track, owner, "b" * 32) == held

    def test_a_spent_token_and_those_of_others_stay_as_they_are(self, client, team, owner, track):
        spent = make_token(team, track, training="a" * 32, issued_to=owner, record_sha256="5" * 64)
        others = make_token(team, track, training="b" * 32, issued_to=make_user())
        assert "Yes, release" not in self.page(client, owner)
        for token in (spent, others):
            address = reverse("submissions:release_token", args=[token.pk])
            assert "can't be released" in unescape(client.post(address, follow=True).text)
            assert RunToken.objects.get(pk=token.pk).training
        foreign = make_token(make_team(), track, training="c" * 32)
        assert client.post(reverse("submissions:release_token", args=[foreign.pk])).status_code == 404

    def test_a_team_without_any_reads_how_to_get_one(self, client, owner):
        html = self.page(client, owner)
        assert "has no run tokens yet" in html
        assert "pfl train" in html
