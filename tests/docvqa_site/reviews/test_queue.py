from django.test import RequestFactory
from django.urls import reverse
from django.utils import timezone

from docvqa_site.accounts.adapters import AccountAdapter
from docvqa_site.reviews.assignments import assign
from docvqa_site.reviews.deadlines import SECOND_OPINION_TIME, default_due
from docvqa_site.reviews.models import Recusal
from docvqa_site.reviews.queue import Part, queue_of, waiting_for
from docvqa_site.reviews.recusals import recuse
from docvqa_site.submissions.models import RunState
from docvqa_site.teams.models import Membership
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import (
    change_results,
    make_artifact,
    make_organizer,
    make_reviewer,
    make_team,
    make_user,
    scored_submission,
)
from tests.docvqa_site.reviews.test_decisions import accept, ask, reject, reject_for_good, revise

QUEUE = "/reviews/"


def parts(reviewer):
    return {section.part: [entry.submission for entry in section.entries] for section in queue_of(reviewer)}


def test_every_submission_is_in_one_part(reviewer):
    waiting, decided, rejected, accepted, asked = (scored_submission() for _ in range(5))
    ask(asked, make_reviewer())
    accept(decided, reviewer)
    reject_for_good(rejected)
    for _ in range(2):
        accept(accepted, make_reviewer())
    assert parts(reviewer) == {
        Part.NEEDS_ME: [waiting],
        Part.WAITING_FOR_REVIEWERS: [decided],
        Part.WAITING_FOR_TEAM: [asked],
        Part.REJECTED: [rejected],
        Part.DECIDED: [accepted],
    }


def test_empty_parts_share_a_line(client, reviewer):
    page = client.get(QUEUE).text
    assert page.count("<h2") == 1
    assert "Waiting for the team: none" in page
    ask(scored_submission(), make_reviewer())
    page = client.get(QUEUE).text
    assert page.count("<h2") == 2
    assert "Waiting for the team: none" not in page


def test_a_submission_that_is_evaluated_again_stays_in_its_part(reviewer):
    submission = scored_submission()
    submission.runs.update(state=RunState.QUEUED)
    assert parts(reviewer)[Part.NEEDS_ME] == [submission]
    assert waiting_for(reviewer) == 1


def test_the_reviewers_own_teams_are_left_out(reviewer):
    Membership.objects.create(team=scored_submission().team, user=reviewer)
    assert not any(parts(reviewer).values())


def test_the_page_shows_flags_and_hides_what_others_decided(client, reviewer):
    submission = scored_submission()
    change_results(submission.runs.get(), checks=[{"id": "record.providers", "status": "flagged"}])
    accept(submission, make_reviewer(name="Rita Review"))
    page = client.get(QUEUE).text
    assert reverse("reviews:desk", args=[submission.pk]) in page
    assert "1 flagged check<" in page
    assert "/docs/roles/reviewer/" in page
    assert "accepted by" not in page
    assert "Rita Review" not in page
    accept(submission, reviewer)
    # Nobody was assigned.
    assert f"Rita Review, {reviewer}" in client.get(QUEUE).text


def test_a_row_says_what_the_reviewer_has_done_and_what_is_due_comes_first(client, reviewer):
    older, urgent = scored_submission(), scored_submission()
    assign(urgent, reviewer, default_due(), actor=reviewer)
    client.post(reverse("reviews:draft", args=[older.pk]), {"noise": "yes"})
    assert parts(reviewer)[Part.NEEDS_ME] == [urgent, older]
    page = client.get(QUEUE).text
    assert "draft 1/16" in page
    assert "14 days left" in page


def test_where_a_second_opinion_is_due_rows_and_the_desk_say_so_and_until_when(client, reviewer):
    older, contested = scored_submission(), scored_submission()
    page = client.get(QUEUE).text
    assert "another reviewer is needed" not in page
    other = make_reviewer()
    reject(contested, other)
    day = timezone.now().date() + SECOND_OPINION_TIME
    by = f"(by {day:%b} {day.day}, {day:%Y})"
    assert parts(reviewer)[Part.NEEDS_ME] == [contested, older]
    page = client.get(QUEUE).text
    assert page.count("another reviewer is needed</span>") == page.count(by) == 1
    assert "proposes to reject" not in page
    desk = reverse("reviews:desk", args=[contested.pk])
    sentence = f"Another reviewer needs to decide by <strong>{day:%b} {day.day}, {day:%Y}</strong>"
    assert sentence in client.get(desk).text
    assert "Another reviewer needs to decide" not in client.get(reverse("reviews:desk", args=[older.pk])).text
    client.force_login(other)
    assert by in client.get(QUEUE).text
    assert sentence in client.get(desk).text
    # Reviewers who disagree have no day.
    accept(contested, make_reviewer())
    client.force_login(reviewer)
    page = client.get(QUEUE).text
    assert "another reviewer is needed</span>" in page
    assert by not in page
    assert "Another reviewer needs to decide</li>" in client.get(desk).text


def test_a_row_does_not_reveal_that_changes_were_requested(client, reviewer):
    submission = scored_submission()
    assign(submission, reviewer, default_due(), actor=reviewer)
    other = make_reviewer()
    ask(submission, other)
    page = client.get(QUEUE).text
    assert "revision due" not in page
    # Nobody expects a decision before the team has revised the proof.
    assert "days left" not in page
    client.force_login(other)
    assert "revision due" in client.get(QUEUE).text


def test_a_row_names_the_version_of_a_revised_proof(client, reviewer):
    submission = scored_submission()
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF)
    assert "(version" not in client.get(QUEUE).text
    revise(submission)
    assert "(version 2, sent " in client.get(QUEUE).text


def test_an_organizer_who_reviews_is_led_from_a_row_to_assigning(client, reviewer):
    submission, other = scored_submission(), scored_submission()
    address = reverse("reviews:assign", args=[submission.pk])
    assert address not in client.get(QUEUE).text
    client.force_login(make_organizer("organize", "review_proofs"))
    assert f'<a class="small" href="{address}">Assign<' in client.get(QUEUE).text
    for one in (submission, other):
        for _ in range(2):
            accept(one, make_reviewer())
    # The review is complete.
    assert address not in client.get(QUEUE).text


def test_a_coordinator_is_called_one(client, reviewer):
    submission = scored_submission()
    recuse(submission, Recusal.Why.COORDINATION, actor=reviewer)
    assert ">coordinating</td>" in client.get(QUEUE).text
    desk = client.get(reverse("reviews:desk", args=[submission.pk])).text
    assert "Messages to and from the team" in desk
    assert "The team sees your reviewer number" not in desk


def test_a_long_part_says_how_much_is_not_listed(client, reviewer, monkeypatch):
    monkeypatch.setattr("docvqa_site.reviews.queue.PART_LENGTH", 2)
    for _ in range(3):
        scored_submission()
    assert "1 more not shown" in client.get(QUEUE).text


def test_few_of_the_settled_proofs_are_listed(client, reviewer, monkeypatch):
    monkeypatch.setattr("docvqa_site.reviews.queue.SETTLED_LENGTH", 1)
    for _ in range(2):
        submission = scored_submission()
        for _ in range(2):
            accept(submission, make_reviewer())
    assert "1 more not shown" in client.get(QUEUE).text


def test_the_queue_takes_as_many_queries_for_many_as_for_one(client, reviewer, django_assert_max_num_queries):
    scored_submission()
    with django_assert_max_num_queries(22) as one:
        client.get(QUEUE)
    for _ in range(4):
        scored_submission()
    with django_assert_max_num_queries(len(one)):
        client.get(QUEUE)


def test_the_menu_counts_what_needs_the_reviewer(client, reviewer):
    scored_submission()
    accept(scored_submission(), reviewer)
    assert '<a href="/reviews/">Reviews (1)</a>' in client.get("/tracks/").text
    assert '<a href="/reviews/" aria-current="page">Reviews (1)</a>' in client.get(QUEUE).text
    client.force_login(make_user())
    assert "Reviews (" not in client.get("/tracks/").text


def test_others_have_no_queue(client, db):
    assert client.get(QUEUE).status_code == 302
    for user in (make_user(), make_user(is_staff=True)):
        client.force_login(user)
        assert client.get(QUEUE).status_code == 403


def test_a_reviewer_without_a_second_factor_is_led_to_set_one_up(client, db):
    client.force_login(make_reviewer(second_factor=False))
    assert client.get(QUEUE).url == reverse("mfa_index")


def test_a_reviewer_without_a_team_begins_with_the_queue(reviewer):
    request = RequestFactory().get("/")
    request.user = reviewer
    assert AccountAdapter().get_login_redirect_url(request) == QUEUE
    Membership.objects.create(team=make_team(), user=reviewer)
    request.user = type(reviewer).objects.get(pk=reviewer.pk)
    assert AccountAdapter().get_login_redirect_url(request) == reverse("home")
