"""Unresolved challenges as a team explains them, and as the reviewers of its later runs read them."""

from html import unescape

import pytest
from django.urls import reverse

from docvqa_site.audit.models import AuditEntry
from docvqa_site.submissions.models import RunState, RunToken
from docvqa_site.submissions.removal import removal_note
from docvqa_site.teams.models import Membership
from docvqa_site.teams.services import create_team, leave
from tests.docvqa_site.factories import (
    make_reviewer,
    make_run,
    make_submission,
    make_team,
    make_token,
    make_user,
)
from tests.docvqa_site.submissions.drafts import fill, make_private_track

pytestmark = pytest.mark.django_db

WHY = "The <disk> was full, so the vectors were lost."


@pytest.fixture
def track():
    return make_private_track()


@pytest.fixture
def lost(team, track):
    return make_token(team, track, record_sha256="5" * 64)


@pytest.fixture
def scored(team, track, lost):
    """A run whose challenge was drawn after the unresolved challenge's."""
    submission = make_submission(team, track, state="submitted")
    run = make_run(submission, budget=1.0, state=RunState.SCORED)
    make_token(team, track, run=run, challenge=run.challenge)
    return submission


def explain(member, submission, token, text=WHY):
    address = reverse("submissions:explain_challenge", args=[submission.pk, token.pk])
    return member.post(address, {"explanation": text}, follow=True)


class TestForm:
    @pytest.mark.parametrize("state", ["draft", "submitted"])
    def test_the_team_explains_where_it_submits_and_afterwards(self, member, team, track, lost, state):
        submission = make_submission(team, track, state=state)
        make_run(submission, budget=1.0, state=RunState.SCORED if state == "submitted" else RunState.DRAFT)
        page = explain(member, submission, lost)
        assert "Your explanation is saved" in page.text
        assert "The &lt;disk&gt; was full" in page.text
        assert lost.token in page.text
        assert RunToken.objects.get(pk=lost.pk).explanation == WHY
        entry = AuditEntry.objects.get(action="run_token.explained")
        assert entry.details == {"before": "", "after": WHY}

    def test_there_is_none_without_an_unresolved_challenge(self, member, team, track):
        make_token(team, track)
        make_token(make_team(), track, record_sha256="5" * 64)
        submission = make_submission(team, track)
        make_token(team, track, run=make_run(submission, budget=1.0))
        assert "Unresolved challenges" not in member.get(submission.get_absolute_url()).text

    def test_a_drafts_own_challenge_is_not_lost_for_the_draft(self, member, team, track):
        submission = make_submission(team, track)
        own = make_token(team, track, record_sha256="5" * 64)
        make_run(submission, budget=1.0, challenge=own.challenge)
        assert "Unresolved challenges" not in member.get(submission.get_absolute_url()).text

    def test_a_text_has_an_end(self, member, team, track, lost):
        page = explain(member, make_submission(team, track), lost, "x" * 1001)
        assert "Not saved." in page.text
        assert RunToken.objects.get(pk=lost.pk).explanation == ""

    def test_nobody_else_explains_it(self, client, team, track, lost):
        other = make_team()
        client.force_login(other.memberships.get().user)
        for submission in (make_submission(team, track), make_submission(other, track)):
            assert explain(client, submission, lost).status_code == 404
        assert RunToken.objects.get(pk=lost.pk).explanation == ""

    def test_what_is_no_unresolved_challenge_is_not_explained(self, member, team, track):
        submission = make_submission(team, track)
        run = make_run(submission, budget=1.0)
        for token in (make_token(team, track), make_token(team, track, run=run)):
            assert explain(member, submission, token).status_code == 404


class TestReading:
    def test_reviewers_read_the_explanation_on_the_desk(self, client, member, scored, lost):
        client.force_login(make_reviewer())
        desk = reverse("reviews:desk", args=[scored.pk])
        assert "none so far" in client.get(desk).text
        RunToken.objects.filter(pk=lost.pk).update(explanation=WHY)
        page = client.get(desk).text
        assert "Unresolved challenges: 1" in page
        assert "The &lt;disk&gt; was full" in page
        assert "2 issued, 1 used by a run, 1 with an unresolved challenge" in page

    def test_they_see_that_a_member_drew_one_in_another_team(self, client, team, track):
        make_token(team, track, record_sha256="5" * 64)
        person = make_user()
        Membership.objects.create(team=team, user=person, joined_at=team.created_at)
        leave(person)
        submission = make_submission(create_team(person, "The next team"), track, state="submitted")
        run = make_run(submission, budget=1.0, state=RunState.SCORED)
        make_token(submission.team, track, run=run, challenge=run.challenge)
        client.force_login(make_reviewer())
        page = client.get(reverse("reviews:desk", args=[submission.pk])).text
        assert "Unresolved challenges: 1" in page
        assert ", for another team: " in page

    def test_they_read_nothing_of_tries_that_came_later(self, client, team, track, scored):
        make_token(team, track, record_sha256="5" * 64)
        client.force_login(make_reviewer())
        assert "Unresolved challenges: 1" in client.get(reverse("reviews:desk", args=[scored.pk])).text

    def test_the_public_reads_none_of_it(self, client, scored, lost):
        RunToken.objects.filter(pk=lost.pk).update(explanation=WHY)
        page = client.get(scored.get_absolute_url()).text
        assert "disk" not in page
        assert lost.token not in page

    def test_the_list_of_submissions_counts_it(self, member, lost, track):
        assert (
            f"{track}: 1 issued, 0 used, 1 unresolved challenge"
            in member.get(reverse("submissions:list")).text
        )


class TestRemoval:
    """What removing a run, or all of a submission, means for the challenge of its training record."""

    STAYS = "The challenge of its training record stays unresolved"

    @pytest.fixture
    def drafted(self, team, track, lost):
        """A draft's run, whose record came with the token."""
        return make_run(make_submission(team, track), budget=1.0, challenge=lost.challenge)

    def test_whoever_discards_a_draft_reads_it_before(self, member, team, track, drafted):
        discarding = f"Its files will be deleted. This can't be undone. {self.STAYS}"
        assert discarding in unescape(member.get(drafted.submission.get_absolute_url()).text)
        without_record = make_submission(team, track)
        assert self.STAYS not in member.get(without_record.get_absolute_url()).text

    def test_whoever_removes_a_run_or_its_record_reads_it_before(self, member, drafted, lost):
        fill(drafted)
        drafted.challenge = lost.challenge
        drafted.save()
        fill(make_run(drafted.submission, budget=4.0))
        page = unescape(member.get(drafted.submission.get_absolute_url()).text)
        for removed in ("The run's files", "The record and its annex"):
            assert page.count(f"{removed} will be deleted. This can't be undone. {self.STAYS}") == 1
            assert page.count(f"{removed} will be deleted. This can't be undone.") == 2

    def test_it_is_stated_beside_each_draft_of_the_list(self, member, team, track, drafted):
        make_submission(team, track, title="Without a record")
        page = member.get(reverse("submissions:list")).text
        assert page.count(self.STAYS) == 1
        assert f'aria-describedby="left-{drafted.submission.pk}"' in page
        assert page.index(str(drafted.submission), page.index("Select the drafts")) < page.index(self.STAYS)

    def test_it_names_no_challenge_that_another_run_resolves(self, team, track, drafted):
        assert self.STAYS in removal_note([drafted])
        waiting = make_run(
            make_submission(team, track, state="submitted"),
            budget=1.0,
            state=RunState.QUEUED,
            challenge=drafted.challenge,
        )
        assert removal_note([drafted]) == ""
        assert self.STAYS in removal_note([waiting])
        RunToken.objects.filter(challenge=drafted.challenge).update(run=waiting)
        assert removal_note([waiting]) == ""

    def test_it_counts_the_records(self, team, track, drafted):
        second = make_token(team, track, record_sha256="6" * 64)
        make_run(drafted.submission, budget=4.0, challenge=second.challenge)
        make_run(drafted.submission, budget=8.0)
        note = removal_note(drafted.submission.runs.all())
        assert "The challenges of its 2 training records stay unresolved" in note

    def test_a_practice_submission_leaves_no_board_when_it_is_withdrawn(self, member, team, track, lost):
        practice = make_submission(team, track, state="submitted", practice=True, published_at=None)
        make_run(practice, budget=1.0, state=RunState.SCORED, challenge=lost.challenge)
        page = unescape(member.get(practice.get_absolute_url()).text)
        assert "removes it from the leaderboards" not in page
        assert "The practice slot is not returned" in page
        assert self.STAYS in page
