"""When a submission becomes public and names its team: by its phase, and by its team."""

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from docvqa_site.audit.models import AuditEntry
from docvqa_site.challenge.models import Anonymity, ResultsTiming
from docvqa_site.evaluation.services import cancel
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.models import Notification
from docvqa_site.notifications.preferences import turn_off
from docvqa_site.reviews.selectors import reviewable_submissions
from docvqa_site.submissions.models import Submission
from docvqa_site.submissions.publication import follow_phases, give_name, publish
from docvqa_site.submissions.services import copy_to_draft
from docvqa_site.teams.models import Membership
from tests.docvqa_site.api.caller import Caller, codes
from tests.docvqa_site.factories import (
    make_organizer,
    make_phase,
    make_run,
    make_submission,
    make_track,
    make_user,
    owner_of,
)
from tests.docvqa_site.submissions import submitting
from tests.docvqa_site.submissions.drafts import make_complete_draft, make_private_track
from tests.docvqa_site.submissions.submitting import rejected, submit

pytestmark = pytest.mark.django_db

NOW = timezone.now()
DAY = timedelta(days=1)
BOTH: dict[str, Any] = {"keep_private": True, "anonymous": True}


def liberal_track(**fields):
    return make_track(**{"allows_private": True, "anonymity": Anonymity.UNTIL_NAMED, **fields})


def submitted(track=None, **fields):
    submission = make_complete_draft(track=track or liberal_track(), **fields)
    submit(submission)
    return submission


class TestSubmitting:
    def test_what_is_submitted_belongs_to_the_phase_that_runs_and_is_public(self):
        track = make_track(closes_at=NOW - DAY)
        final = make_phase(track, name="Final", starts_at=NOW - DAY)
        submission = submitted(track)
        assert submission.phase == final
        assert submission.published_at == submission.submitted_at
        assert submission.alias == ""

    def test_it_is_private_and_anonymous_where_the_team_chose_so_and_the_phase_allows_it(self):
        first, second = submitted(**BOTH), submitted(**BOTH)
        assert first.is_unpublished
        assert first.anonymous
        assert first.alias.startswith("Anonymous ")
        assert first.alias != second.alias

    def test_a_choice_that_the_phase_does_not_allow_keeps_it_a_draft(self):
        draft = make_complete_draft(track=make_track(), **BOTH)
        assert submitting.codes(draft) == ["E_SUBMISSION_VISIBILITY"] * 2
        draft.refresh_from_db()
        assert draft.state == "draft"

    def test_a_canceled_one_is_a_draft_with_its_choices_and_gets_another_alias(self):
        submission = submitted(**BOTH)
        alias = submission.alias
        cancel(submission, actor=owner_of(submission.team))
        submission.refresh_from_db()
        assert (submission.phase, submission.published_at, submission.alias) == (None, None, "")
        submit(submission)
        assert submission.is_unpublished
        assert submission.alias not in ("", alias)

    def test_trying_again_keeps_the_choices(self):
        submission = submitted(**BOTH)
        submission.runs.update(state="rejected")
        draft = copy_to_draft(submission, owner_of(submission.team))
        assert draft.keep_private
        assert draft.anonymous

    def test_the_slots_are_those_of_the_phase_and_a_private_one_takes_one(self):
        track = liberal_track(closes_at=NOW - DAY, submissions_per_day=5)
        make_phase(track, starts_at=NOW - DAY, submissions_per_day=1, allows_private=True)
        first = submitted(track, keep_private=True)
        assert submitting.codes(make_complete_draft(first.team, track)) == ["E_SUBMISSION_QUOTA"]

    def test_a_duplicate_of_a_private_one_says_no_more_than_of_a_public_one(self):
        track = liberal_track()
        private = submitted(track, keep_private=True)
        other = make_complete_draft(track=track)
        checkpoint = private.runs.get().artifacts.get(kind="checkpoint").upload
        own = other.runs.get().artifacts.get(kind="checkpoint").upload
        type(own).objects.filter(pk=own.pk).update(sha256=checkpoint.sha256)
        with rejected("E_SUBMISSION_DUPLICATE") as error:
            submit(other)
        text = str(error.value)
        assert private.title not in text
        assert private.team.name not in text


class TestPublishing:
    def test_its_team_makes_it_public_for_good(self):
        submission = submitted(keep_private=True)
        owner = owner_of(submission.team)
        publish(submission, owner)
        assert not Submission.objects.get().is_unpublished
        assert AuditEntry.objects.get(action="submission.published").actor == owner
        with rejected("E_SUBMISSION_STATE"):
            publish(submission, owner)

    @pytest.mark.parametrize("state", ["draft", "withdrawn"])
    def test_only_what_is_submitted_is_published_or_named(self, state):
        submission = make_submission(track=liberal_track(), state=state, **BOTH)
        for act in (publish, give_name):
            with rejected("E_SUBMISSION_STATE"):
                act(submission, owner_of(submission.team))

    def test_not_while_the_phase_keeps_all_results_back(self):
        track = liberal_track(results=ResultsTiming.AFTER_END, closes_at=NOW + DAY)
        submission = submitted(track, keep_private=True)
        with rejected("E_SUBMISSION_STATE"):
            publish(submission, owner_of(submission.team))
        track.phases.update(ends_at=NOW)
        publish(submission, owner_of(submission.team), NOW)
        assert not Submission.objects.get().is_unpublished

    def test_a_phase_that_ends_shows_what_it_kept_back_and_nothing_that_a_team_did(self):
        track = liberal_track(results=ResultsTiming.AFTER_END, closes_at=NOW + DAY)
        kept, own = submitted(track), submitted(track, keep_private=True)
        assert kept.is_unpublished
        assert follow_phases(NOW) == 0
        assert follow_phases(NOW + DAY) == 1
        kept.refresh_from_db()
        own.refresh_from_db()
        assert not kept.is_unpublished
        assert own.is_unpublished
        assert follow_phases(NOW + DAY) == 0

    def test_each_team_is_notified_once_of_results_that_a_phase_no_longer_keeps_back(self):
        track = liberal_track(
            name="Track 1",
            results=ResultsTiming.AFTER_END,
            closes_at=NOW + DAY,
            anonymity=Anonymity.UNTIL_END,
        )
        first = submitted(track)
        again = make_complete_draft(first.team, track, anonymous=True)
        submit(again)
        quiet, private = submitted(track), submitted(track, keep_private=True)
        turn_off(owner_of(quiet.team), Kind.RESULTS, by="page")
        mail.outbox.clear()
        follow_phases(NOW + DAY)
        sent = [(message.to[0], message.subject.removeprefix("[PFL-DocVQA] ")) for message in mail.outbox]
        member = owner_of(first.team).email
        assert sorted(sent) == [
            (member, "Results are public: Track 1, phase “Submissions”"),
            (member, "Teams are named: Track 1, phase “Submissions”"),
        ]
        (shown,) = Notification.objects.filter(user=owner_of(quiet.team))
        assert shown.page == f"/leaderboard/{track.slug}/?phase=Submissions&team={quiet.team.slug}"
        assert not Notification.objects.filter(user=owner_of(private.team)).exists()

    def test_reviews_begin_when_it_is_public(self):
        reviewer = make_organizer("review_proofs")
        submission = submitted(make_private_track(allows_private=True), keep_private=True)
        assert not reviewable_submissions(reviewer).exists()
        publish(submission, owner_of(submission.team))
        assert reviewable_submissions(reviewer).exists()


class TestNaming:
    def test_its_team_is_named_for_good(self):
        submission = submitted(anonymous=True)
        owner = owner_of(submission.team)
        assert submission.author == submission.alias
        give_name(submission, owner)
        assert Submission.objects.get().author == submission.team.name
        assert AuditEntry.objects.get(action="submission.named").actor == owner
        with rejected("E_SUBMISSION_STATE"):
            give_name(submission, owner)

    @pytest.mark.parametrize(
        ("anonymity", "is_named"), [(Anonymity.UNTIL_END, True), (Anonymity.UNTIL_NAMED, False)]
    )
    def test_the_end_of_the_phase_names_it_where_its_rule_says_so(self, anonymity, is_named):
        submission = submitted(liberal_track(anonymity=anonymity, closes_at=NOW + DAY), anonymous=True)
        assert follow_phases(NOW) == 0
        follow_phases(NOW + DAY)
        assert (not Submission.objects.get(pk=submission.pk).anonymous) is is_named


class TestPages:
    @pytest.fixture
    def submission(self):
        submission = submitted(**BOTH)
        submission.runs.all().delete()
        make_run(submission, state="scored", bytes_total=20)
        return submission

    def test_the_team_reads_who_sees_it_and_which_rank_it_would_have(self, client: Client, submission):
        for size in (10, 30):
            other = make_submission(track=submission.track, state="submitted")
            make_run(other, state="scored", bytes_total=size)
        client.force_login(owner_of(submission.team))
        page = client.get(submission.get_absolute_url()).text
        assert "would be #2" in page
        assert "Only your team and the organizers can see this page" in page
        assert f"“{submission.alias}” instead of the team" in page
        assert "Cite this result" not in page
        client.force_login(make_organizer())
        page = client.get(submission.get_absolute_url()).text
        assert "would be" not in page
        assert reverse("submissions:publish", args=[submission.pk]) not in page

    def test_the_rank_is_the_one_that_it_has_once_it_is_public(self, client: Client, submission):
        make_run(make_submission(track=submission.track, state="submitted"), state="scored", bytes_total=20)
        client.force_login(owner_of(submission.team))
        assert "would be #1" in client.get(submission.get_absolute_url()).text
        address = reverse("submissions:publish", args=[submission.pk])
        page = client.post(address, follow=True).text
        assert "is public" in page
        assert "<strong>#1</strong>" in page
        page = client.post(reverse("submissions:give_name", args=[submission.pk]), follow=True).text
        assert "names your team" in page

    @pytest.mark.parametrize("name", ["publish", "give_name"])
    def test_nobody_else_publishes_or_names_it(self, client: Client, submission, name):
        address = reverse(f"submissions:{name}", args=[submission.pk])
        assert client.post(address).status_code == 302
        for user in (make_user(), make_organizer(), make_user(is_staff=True, is_superuser=True)):
            client.force_login(user)
            assert client.post(address).status_code == 404
        client.force_login(owner_of(submission.team))
        assert client.get(address).status_code == 405
        submission.refresh_from_db()
        assert submission.is_unpublished
        assert submission.anonymous

    def test_the_list_of_submissions_marks_it(self, client: Client, submission):
        client.force_login(owner_of(submission.team))
        page = client.get(reverse("submissions:list")).text
        assert ">unpublished</span>" in page
        assert ">anonymous</span>" in page

    def test_a_draft_says_what_will_be_public_and_offers_what_the_phase_allows(self, client: Client):
        draft = make_complete_draft(track=liberal_track(), **BOTH)
        client.force_login(owner_of(draft.team))
        page = client.get(draft.get_absolute_url()).text
        assert (
            "stay unpublished until you publish them, under an anonymous name until you reveal your team's name"
            in page
        )
        assert 'name="keep_private"' in client.get(reverse("submissions:edit", args=[draft.pk])).text
        other = make_submission(draft.team, make_track())
        form = client.get(reverse("submissions:edit", args=[other.pk])).text
        assert 'name="keep_private"' not in form
        assert 'name="anonymous"' not in form

    def test_a_choice_that_is_no_longer_allowed_is_kept_and_can_be_taken_back(self, client: Client):
        draft = make_submission(track=liberal_track())
        client.force_login(owner_of(draft.team))
        draft.track.phases.update(allows_private=False, anonymity=Anonymity.NONE)
        address = reverse("submissions:edit", args=[draft.pk])
        client.post(address, {"title": "Method", "keep_private": "on"})
        draft.refresh_from_db()
        assert draft.keep_private
        client.post(address, {"title": "Method"})
        draft.refresh_from_db()
        assert not draft.keep_private


class TestApi:
    def test_it_makes_and_ends_both_choices(self, client: Client):
        team_of = make_complete_draft(track=liberal_track())
        api = Caller(client, owner_of(team_of.team))
        path = f"submissions/{team_of.pk}"
        assert api("PATCH", path, BOTH).json()["keep_private"] is True
        answer = api.post(f"{path}/submit")
        assert (answer["phase"], answer["published_at"], answer["anonymous"]) == ("Submissions", None, True)
        assert answer["alias"].startswith("Anonymous ")
        response = api("PATCH", path, {"keep_private": False})
        assert (response.status_code, codes(response)) == (409, ["E_SUBMISSION_STATE"])
        assert api.post(f"{path}/publish")["published_at"] is not None
        assert api.post(f"{path}/name")["anonymous"] is False
        response = api("POST", f"{path}/publish")
        assert (response.status_code, codes(response)) == (409, ["E_SUBMISSION_STATE"])

    @pytest.mark.parametrize("act", ["publish", "name"])
    def test_other_teams_find_nothing(self, client: Client, act):
        submission = submitted(**BOTH)
        other = make_submission().team
        assert Membership.objects.filter(team=other).exists()
        assert (
            Caller(client, owner_of(other))("POST", f"submissions/{submission.pk}/{act}").status_code == 404
        )
