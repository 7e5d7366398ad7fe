"""The home page of members: the next step, what needs the team, and the latest results."""

from datetime import timedelta

import pytest
from django.utils import timezone

from docvqa_site.accounts.services import create_token
from docvqa_site.downloads.models import DownloadKind
from docvqa_site.pages.member import home_of
from docvqa_site.submissions.models import Run, RunState, SubmissionState
from docvqa_site.submissions.services import disqualify
from tests.docvqa_site.factories import (
    make_download,
    make_organizer,
    make_reviewer,
    make_run,
    make_submission,
    make_team,
    make_track,
    make_user,
    scored_submission,
)
from tests.docvqa_site.reviews.test_decisions import reject

pytestmark = pytest.mark.django_db


def shown(client, user):
    client.force_login(user)
    return client.get("/").text


def needs(user):
    return [need.text for need in home_of(user).needs]


def next_step(user):
    step = home_of(user).next_step
    return step.name if step else None


def test_staff_without_a_team_is_not_asked_to_form_one(client):
    organizer = make_organizer("organize")
    assert "Your next step" not in shown(client, organizer)
    make_team(organizer)
    assert "Your next step" in shown(client, organizer)


def test_the_next_step_leads_from_an_account_to_a_first_submission(client):
    user = make_user()
    assert next_step(user) == "Create a team, or join one"
    assert "Create a team, or join one" in shown(client, user)
    team = make_team(user)
    assert next_step(user) == "Get the data and the base weights"
    create_token(user, "laptop")
    assert next_step(user) == "Get the data and the base weights"
    user.api_tokens.update(last_used_at=timezone.now())
    assert next_step(user) == "Train a model and start your first draft"
    draft = make_submission(team)
    assert next_step(user) == "Submit it"
    assert needs(user) == [f"“{draft}” is a draft. Finish and submit it."]
    page = shown(client, user)
    assert 'href="/docs/roles/participant/">Take part in ten minutes</a>: the short guide' in page
    assert draft.get_absolute_url() in page
    assert "Your next step" in page


def test_a_step_that_was_not_taken_is_not_called_done(client):
    user = make_user()
    make_submission(make_team(user))
    page = shown(client, user)
    assert next_step(user) == "Submit it"
    for step in ("Get the data and the base weights", "Create an API token for the pfl command"):
        assert f">{step}</a>" in page
    assert "Train a model and start your first draft<span" in page


def test_a_member_with_results_is_not_asked_for_a_team_and_a_token(client):
    make_track()
    for kind in (DownloadKind.DATA, DownloadKind.WEIGHTS):
        make_download(kind)
    needed = "and submit the result, you need"
    member = make_user()
    assert f'{needed} <a href="/team/">a team</a>' in " ".join(shown(client, member).split())
    make_team(member)
    assert f'{needed} <a href="/account/tokens/">an API token</a>' in " ".join(shown(client, member).split())
    team = scored_submission(published_at=timezone.now()).team
    Run.objects.update(scored_at=timezone.now())
    assert needed not in shown(client, team.memberships.get().user)


def test_the_latest_results_have_scores_and_ranks(client):
    team = make_team()
    user = team.memberships.get().user
    track = make_track(anls_threshold=0.5)
    submission = make_submission(team, track, state=SubmissionState.SUBMITTED, title="Mine")
    make_run(submission, state=RunState.SCORED, anls=0.625)
    page = shown(client, user)
    assert "Latest results" in page
    assert "ANLS 0.6250" in page
    assert "#1" in page
    submission.state = SubmissionState.WITHDRAWN
    submission.save()
    assert home_of(user).latest == []
    submission.state = SubmissionState.SUBMITTED
    submission.save()
    other = make_track(slug="other", name="Another track")
    make_submission(team, other)
    page = shown(client, user)
    assert f"Your runs in {track}" in page
    assert f"Your runs in {other}" not in page
    assert next_step(user) is None


def test_what_others_decided_needs_the_team():
    submission = scored_submission()
    user = submission.created_by
    assert needs(user) == []
    reject(submission, make_reviewer())
    reject(submission, make_reviewer())
    run = submission.runs.get()
    disqualify(run, "Trained on the test set.", make_organizer())
    assert needs(user) == [
        f"The proof of “{submission}” was rejected. Revise it, or appeal.",
        f"{run} was disqualified. You can appeal.",
    ]


def test_a_phase_that_closes_soon_and_a_rejected_run_are_named():
    track = make_track()
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED)
    run = make_run(submission, state=RunState.REJECTED)
    track.phases.update(ends_at=timezone.now() + timedelta(days=3))
    found = needs(submission.created_by)
    assert found[0] == f"{run} was rejected. Fix it and try again."
    assert found[1].startswith(f"{track}: the phase")


def test_visitors_and_other_teams_see_nothing_of_it(client):
    draft = make_submission()
    assert draft.title not in client.get("/").text
    assert draft.title not in shown(client, make_team().memberships.get().user)


def test_it_takes_a_constant_number_of_queries(client, django_assert_max_num_queries):
    team = make_team()
    track = make_track(anls_threshold=0.5)
    for _ in range(6):
        make_submission(team, track)
        submission = make_submission(team, track, state=SubmissionState.SUBMITTED)
        make_run(submission, state=RunState.SCORED, anls=0.6)
    user = team.memberships.get().user
    with django_assert_max_num_queries(24):
        home_of(user)
