"""The page of a method: where its description stands, and ANLS by question type there, in the API, and on no board."""

import re
from html import unescape

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from docvqa_site.audit.versions import boards_changed
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET, FEWEST_BYTES
from docvqa_site.evaluation.test_sets.question_types import PROVIDERS
from docvqa_site.notifications.inbox import unread_count
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import add_notifications
from docvqa_site.submissions.models import RunState, SubmissionState
from evaluator.folding.lines import BuiltIn, TranscriptRun
from evaluator.messages.jobs import ArtifactKind
from evaluator.messages.results import RunResults
from evaluator.records.lines import TrainableTensor
from evaluator.records.server_steps import SumStep
from tests.docvqa_site.factories import (
    SCORES,
    change_results,
    make_artifact,
    make_run,
    make_submission,
    make_track,
)
from tests.docvqa_site.submissions.records import record_of

pytestmark = pytest.mark.django_db

TYPES = [
    {"name": "total_amount", "anls": 0.876, "anls_low": 0.81, "anls_high": 0.915},
    {"name": "date & <b>", "anls": 0.5, "anls_low": 0.4, "anls_high": 0.6},
]


@pytest.fixture
def submission():
    track = make_track(BEST_ANLS_AT_BUDGET, slug="privacy", budgets=[1, 4])
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED)
    make_run(submission, state=RunState.SCORED, budget=1.0, epsilon=0.9, question_types=TYPES[:1])
    make_run(submission, state=RunState.SCORED, budget=4.0, epsilon=3.9, question_types=TYPES)
    return submission


def test_a_method_says_who_may_read_its_proof(client, submission):
    page = client.get(submission.get_absolute_url()).text
    assert "the team has not agreed to publish it" in page
    type(submission).objects.update(publishes_proof=True)
    page = client.get(submission.get_absolute_url()).text
    assert "until enough reviewers have accepted it; the team has agreed to publish it then." in page
    other = make_submission(track=make_track(), state=SubmissionState.SUBMITTED)
    make_run(other, state=RunState.SCORED)
    assert "privacy proof" not in client.get(other.get_absolute_url()).text


def test_a_method_has_a_table_of_its_types_at_every_budget(client, submission):
    text = " ".join(client.get(submission.get_absolute_url()).text.split())
    assert '<h2 id="by-type">ANLS by question type</h2>' in text
    assert '<th scope="col" class="num">ε = 1</th><th scope="col" class="num">ε = 4</th>' in text
    assert text.count('<strong>0.87</strong> <span class="muted small">0.81–0.92</span>') == 2
    # The run at ε = 1 has no score on the second type.
    assert '<th scope="row">date &amp; &lt;b&gt;</th> <td class="num" data-label="ε = 1">–</td>' in text


def test_a_table_of_seen_and_unseen_providers_alone_speaks_of_no_types(client, submission):
    for run in submission.runs.all():
        change_results(run, question_types=[{**TYPES[0], "name": name} for name in PROVIDERS.values()])
    text = " ".join(client.get(submission.get_absolute_url()).text.split())
    assert '<h2 id="by-type">ANLS on seen and unseen providers</h2>' in text
    assert "“Seen” providers were in the training data" in text
    assert "question type" not in text


def test_without_types_there_is_no_such_table(client, submission):
    for run in submission.runs.all():
        change_results(run, question_types=[])
    assert "question type" not in client.get(submission.get_absolute_url()).text


def test_the_api_has_them_and_the_tables_of_many_runs_leave_them_out(client, submission):
    board = client.get("/api/v1/leaderboards/privacy").json()["boards"][1]
    assert board["rows"][0]["results"]["question_types"] == [
        {"name": "total_amount", "anls": 0.87, "anls_low": 0.81, "anls_high": 0.92},
        {"name": "date & <b>", "anls": 0.5, "anls_low": 0.4, "anls_high": 0.6},
    ]
    for address in (
        "/leaderboard/privacy.json",
        "/leaderboard/privacy.csv",
        "/leaderboard/privacy/?epsilon=4",
    ):
        assert "total_amount" not in client.get(address).text


@pytest.mark.parametrize(("text", "is_first"), [("What it is.", True), ("What it is. " * 100, False)])
def test_a_short_description_stands_above_the_results_and_a_long_one_below(
    client, submission, text, is_first
):
    submission.description = text
    submission.save()
    page = client.get(submission.get_absolute_url()).text
    assert page.count('<h2 id="description">') == 1
    assert (page.index('id="description"') < page.index('id="results"')) == is_first


def test_its_ranks_take_as_many_queries_on_many_boards_as_on_one(client, django_assert_num_queries):
    track = make_track(BEST_ANLS_AT_BUDGET, slug="wide", budgets=[1, 4, 8])
    first, other = (make_submission(track=track, state=SubmissionState.SUBMITTED) for _ in range(2))
    for budget in track.run_budgets():
        # The other is better, so that the first one's range begins below the top.
        make_run(
            other, state=RunState.SCORED, budget=budget, epsilon=0.8, anls=0.9, anls_low=0.8, anls_high=1.0
        )
    weaker = {"epsilon": 0.9, "anls": 0.5, "anls_low": 0.4, "anls_high": 0.6}
    make_run(first, state=RunState.SCORED, budget=1.0, **weaker)
    boards_changed(track.pk)
    with CaptureQueriesContext(connection) as one:
        assert client.get(first.get_absolute_url()).text.count("<strong>#2</strong>") == 1
    for budget in track.run_budgets()[1:]:
        make_run(first, state=RunState.SCORED, budget=budget, **weaker)
    boards_changed(track.pk)
    with django_assert_num_queries(len(one)):
        assert client.get(first.get_absolute_url()).text.count("<strong>#2</strong>") == 3


def test_the_end_of_the_evaluation_renews_ranks_and_verdict_too(client):
    submission = make_submission(track=make_track(), state=SubmissionState.SUBMITTED)
    run = make_run(submission, state=RunState.RUNNING)
    client.force_login(submission.created_by)
    waiting = client.get(submission.get_absolute_url()).text
    assert 'id="verdict" hidden' in waiting
    assert 'id="chips"' in waiting
    run.state, run.scored_at, run.results = RunState.SCORED, timezone.now(), RunResults(**SCORES)
    run.save()
    ended = client.get(reverse("submissions:status", args=[submission.pk])).text
    assert 'hx-select-oob="#team-choices,#chips,#verdict"' in ended
    assert 'id="verdict">' in client.get(submission.get_absolute_url()).text


def test_who_opens_the_page_has_read_what_they_were_notified_of_it(client, submission):
    person = submission.created_by
    add_notifications(
        [person], Kind.RESULTS, "Scored", [f"{settings.SITE_URL}{submission.get_absolute_url()}"]
    )
    add_notifications([person], Kind.RESULTS, "Another", [f"{settings.SITE_URL}/submissions/"])
    client.get(submission.get_absolute_url())
    assert unread_count(person) == 2
    client.force_login(person)
    client.get(submission.get_absolute_url())
    assert unread_count(person) == 1


def test_the_hash_of_an_annex_is_told_from_that_of_its_body(client, submission):
    make_artifact(submission.runs.first(), ArtifactKind.TRAINING_ANNEX)
    client.force_login(submission.created_by)
    assert "The check “annex file” shows that of its body" in client.get(submission.get_absolute_url()).text


def test_without_records_the_settings_are_those_of_the_index_and_the_page_says_where_others_are(client):
    track = make_track(FEWEST_BYTES, slug="bytes")
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED)
    run = make_run(submission, state=RunState.SCORED, rounds_folded=6, log_rounds=6)

    def section():
        text = " ".join(client.get(submission.get_absolute_url()).text.split())
        return text.partition('<h2 id="settings">')[2].partition("</section>")[0]

    assert "the team hasn't published or attached" in unescape(section())
    line = TranscriptRun(
        base_sha256="0" * 64,
        clients=10,
        codec=BuiltIn(name="nf4"),
        lora_scale=None,
        server=SumStep(learning_rate=1.0),
        start="seed 1",
        trainable=[TrainableTensor(name="w", shape=[3, 4])],
    )
    index = line.model_dump_json(by_alias=True).encode() + b"\n{}"
    make_artifact(run, ArtifactKind.TRANSCRIPT, index, "transcript.jsonl")
    make_artifact(run, ArtifactKind.SETTINGS, b"rounds: 6", "settings.yaml")
    shown = unescape(re.sub(r"<[^>]+>", " ", section()))
    shown = " ".join(shown.split())
    for fact in ("Clients 10", "Codec nf4", "Rounds 6", "Server's step sum, learning rate 1"):
        assert fact in shown
    assert "attached for reviewers and organizers; it isn't public" in shown
    submission.code_url = "https://code.example/method"
    submission.save()
    assert 'is <a href="https://code.example/method"' in section()
    submission.anonymous, submission.alias = True, "Someone"
    submission.save()
    assert not section()


def test_everyone_who_may_read_the_records_reads_the_settings_of_the_runs(client, submission):
    assert 'id="settings"' not in client.get(submission.get_absolute_url()).text
    first, second = submission.runs.order_by("budget")
    for run in (first, second):
        make_artifact(run, ArtifactKind.TRAINING_RECORD, record_of(None, f"{run}".encode()), "record.jsonl")
        text = " ".join(client.get(submission.get_absolute_url()).text.split())
        if run == first:
            # Only one of them has a record that can be read.
            assert '<td data-label="ε = 1">0.5</td><td data-label="ε = 4">–</td>' in text
    assert '<a href="#settings">Settings</a>' in text
    table = text[text.index('<h2 id="settings">') :]
    for row in ("Clip norm", "Noise multiplier", "Provider rate", "Server&#x27;s step"):
        assert f'<th scope="row">{row}</th> <td data-label="All runs" colspan="2">' in table
    assert '<td data-label="All runs" colspan="2">sum, learning rate 1</td>' in table
    # Without adapters there is no row of their rank.
    assert "Adapter rank" not in table
    submission.anonymous = True
    submission.alias = "Someone"
    submission.save()
    assert 'id="settings"' not in client.get(submission.get_absolute_url()).text
