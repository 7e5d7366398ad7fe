"""Whatever changes what a board shows gives it a new version, or a cached board would stay wrong."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

import docvqa_site
from docvqa_site.audit.versions import boards_versions
from docvqa_site.challenge.definitions import Definition, save_tracks
from docvqa_site.challenge.models import Phase
from docvqa_site.evaluation import models
from docvqa_site.evaluation.intake.consequences import scored
from docvqa_site.evaluation.intake.outcomes import carry_out, requeue
from docvqa_site.evaluation.models import EvaluationState
from docvqa_site.evaluation.test_sets.parts import reveal
from docvqa_site.organizers.phase_changes import preview_phase, save_phase
from docvqa_site.organizers.track_changes import change_track, changes_between, preview
from docvqa_site.reviews.checklist import CHECKLIST
from docvqa_site.reviews.models import Decision, ProofReview
from docvqa_site.reviews.services import decide
from docvqa_site.submissions.models import RunState, SubmissionState
from docvqa_site.submissions.proof_consent import publish_or_not
from docvqa_site.submissions.publication import give_name, publish
from docvqa_site.submissions.services import describe, disqualify, mark_baseline, withdraw
from docvqa_site.submissions.states import RUN_TRANSITIONS, move_run
from evaluator.messages.results import RunResults
from tests.docvqa_site.factories import (
    SCORES,
    make_reviewer,
    make_run,
    make_submission,
    make_track,
    make_user,
    owner_of,
)
from tests.docvqa_site.reviews.test_decisions import reject_for_good

pytestmark = pytest.mark.django_db

# Every column that a board reads, and what changes it. A column that isn't here fails the test below: find out what
# changes it, let that call `boards_changed`, test it, and add the column.
RUN_MOVES = "move_run, when the run is listed before or after"
NEVER = "never after the submission"
TRACK_EDITS = "the administration, the organizers' desk and load_tracks"
PHASE_EDITS = "the organizers' desk and load_tracks"
HOURLY = "nothing that a board shows: the home page says how many take part, as counted once an hour"
COLUMNS = {
    "submissions_run.id": NEVER,
    "submissions_run.submission_id": NEVER,
    "submissions_run.budget": NEVER,
    "submissions_run.disqualified_because": "disqualify",
    "submissions_run.state": RUN_MOVES,
    "submissions_run.scored_at": RUN_MOVES,
    "submissions_run.results": RUN_MOVES,
    "submissions_run.anls": RUN_MOVES,
    "submissions_run.anls_low": RUN_MOVES,
    "submissions_run.anls_high": RUN_MOVES,
    "submissions_run.bytes_total": RUN_MOVES,
    "submissions_run.epsilon": RUN_MOVES,
    "submissions_run.flagged_checks": RUN_MOVES,
    "submissions_run.trust_level": f"{RUN_MOVES}, and conclude",
    "submissions_run.unbound": RUN_MOVES,
    "submissions_run.counting": RUN_MOVES,
    "submissions_run.log_flag": RUN_MOVES,
    "submissions_run.log_accepted_at": "accept_log",
    "submissions_run.rules": RUN_MOVES,
    "submissions_run.failed_level": f"{RUN_MOVES}, and conclude",
    "submissions_submission.id": NEVER,
    "submissions_submission.team_id": NEVER,
    "submissions_submission.track_id": NEVER,
    "submissions_submission.practice": NEVER,
    "submissions_submission.title": NEVER,
    "submissions_submission.lower_title": NEVER,
    "submissions_submission.submitted_at": NEVER,
    "submissions_submission.code_url": "describe",
    "submissions_submission.paper_url": "describe",
    "submissions_submission.license": "move_submission",
    "submissions_submission.publishes_proof": "publish_or_not",
    "submissions_submission.state": "move_submission",
    "submissions_submission.phase_id": NEVER,
    "submissions_submission.published_at": "publish and follow_phases",
    "submissions_submission.anonymous": "give_name and follow_phases",
    "submissions_submission.alias": NEVER,
    "submissions_submission.acceptances": "decide and reopen",
    "submissions_submission.rejections": "decide and reopen",
    "submissions_submission.change_requests": "decide and reopen",
    "submissions_submission.rejection_stands": "decide, reopen and let_rejections_stand",
    "submissions_submission.proof_rejected": "decide, reopen and let_rejections_stand",
    "submissions_submission.revises_rejected": "move_submission and reopen",
    **dict.fromkeys(
        [f"challenge_phase.{field.column}" for field in Phase._meta.concrete_fields], PHASE_EDITS
    ),
    "submissions_submission.is_baseline": "mark_baseline",
    "teams_team.id": NEVER,
    "teams_team.slug": NEVER,
    "teams_team.name": "the administration",
    "teams_team.created_at": HOURLY,
    "teams_team.country": HOURLY,
    "reviews_proofreview.submission_id": NEVER,
    "reviews_proofreview.decision": "decide and reopen",
    "reviews_proofreview.reason": "decide and reopen",
    "reviews_proofreview.created_at": NEVER,
}
# The functions that save such columns, or whole rows of these tables, by update, save, or a bulk method.
WRITERS = {
    "audit/models.py:save",  # of audit entries
    "audit/transitions.py:move",
    "challenge/definitions.py:_save_track",
    "evaluation/queue/breaker.py:_name_sick",  # of workers and queues, which no board shows
    "evaluation/queue/breaker.py:_pause",
    "evaluation/queue/breaker.py:_note_health",
    "evaluation/queue/breaker.py:resume",
    "evaluation/examining/requests.py:conclude",
    "evaluation/test_sets/parts.py:reveal",
    "proofs/drawing.py:_draw",  # of the pages of proofs, which no board shows
    "proofs/drawing.py:_fail",
    "proofs/pages.py:draw_again",
    "reviews/models.py:save",  # of a review, with the counts of its submission
    "reviews/services.py:_decide",
    "reviews/services.py:reopen",  # which takes decisions back
    "reviews/services.py:take_back",
    "submissions/states.py:change_listed",
    "submissions/states.py:update_results",
    "submissions/services.py:describe",  # of a draft, which no board shows
    "submissions/services.py:accept_log",
    "submissions/services.py:disqualify",
    "proofs/pdf_pages.py:_webp",  # of a picture, not of a row
    "evaluation/models.py:save",  # of an examination, which `conclude` alone makes
    "evaluation/queue/watchdog.py:_watching_since",
    "organizers/outages.py:change_outage",  # of outages, which no board shows
    "organizers/track_changes.py:change_track",
    "organizers/phase_changes.py:save_phase",
    # Of drafts of tracks, which have no boards.
    "organizers/setup/drafts.py:create_draft",
    "organizers/setup/forms.py:save",
    "organizers/setup/views.py:_phases",
    "organizers/setup/views.py:_save",
    "challenge/definitions.py:_save_phases",
    "teams/services.py:_add",  # of new teams
    # Within `erase`, which changes all boards.
    "people/erasing.py:_empty",
    "people/erasing.py:_rename_if_empty",
}
WRITTEN = {
    "revises_rejected",
    "publishes_proof",
    "disqualified_because",
    "log_accepted_at",
    "state",
    "results",
    "is_baseline",
    "title",
    "submitted_at",
    "published_at",
    "anonymous",
    "name",
    "decision",
    "reason",
    "budget",
}


@pytest.fixture
def track():
    return make_track("anls", slug="privacy", budgets=[4], required_reviews=1)


@pytest.fixture
def run(track):
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED)
    return make_run(submission, state=RunState.SCORED, budget=4.0, epsilon=3.0)


def accept(run):
    answers = {item.key: "yes" for item in CHECKLIST}
    decide(run.submission, Decision.ACCEPTED, "", answers, actor=make_reviewer(), declares_no_conflict=True)


def score_another(run):
    other = make_run(
        make_submission(track=run.submission.track, state="submitted"), state="running", budget=4.0
    )
    evaluation = other.evaluations.create(attempt=1, step="scoring", state=EvaluationState.RUNNING)
    now = timezone.now()
    carry_out(scored(evaluation, RunResults(**{**SCORES, "epsilon": 1.0}), now), evaluation, other, now)


def reveal_private_scores(run):
    Phase.objects.update(ends_at=timezone.now())
    split = {"split_sha256": "5" * 64, "private_fraction": 0.5}
    test_set = models.TestSet.objects.create(name=run.rules["test_set"], sha256="0" * 64, **split)
    assert reveal(test_set, "", actor=make_user()) == ""


def rename_team(run, client):
    team = run.submission.team
    client.force_login(make_user(is_staff=True, is_superuser=True))
    inline = {"memberships-TOTAL_FORMS": 0, "memberships-INITIAL_FORMS": 0}
    fields = {"name": "Another name", "affiliation": "", "website": "", **inline}
    response = client.post(reverse("admin:teams_team_change", args=[team.pk]), fields)
    assert response.status_code == 302, response.text


def edit_track(run, client):
    client.force_login(make_user(is_staff=True, is_superuser=True))
    address = reverse("admin:challenge_track_change", args=[run.submission.track.pk])
    form = client.get(address).context["adminform"].form
    values = {name: "" if form[name].value() is None else form[name].value() for name in form.fields}
    values = {name: value for name, value in values.items() if value is not False} | {"name": "Another"}
    response = client.post(address, values)
    assert response.status_code == 302, response.context["errors"]


def change_at_the_desk(track):
    values = {"paused": True}
    seen = preview(track, changes_between(track, values), timezone.now()).digest
    assert change_track(track, values, "", seen, actor=make_user())


def rename_phase(run):
    edited = run.submission.phase
    edited.name = "Another name"
    stored = Phase.objects.get(pk=edited.pk)
    assert save_phase(edited, "", preview_phase(stored, edited, timezone.now()).digest, actor=make_user())


def publish_another(run):
    other = make_submission(track=run.submission.track, state="submitted", published_at=None)
    make_run(other, state="scored", budget=4.0)
    publish(other, owner_of(other.team))


def name_another(run):
    other = make_submission(track=run.submission.track, state="submitted", anonymous=True)
    make_run(other, state="scored", budget=4.0)
    give_name(other, owner_of(other.team))


CHANGES = {
    "a phase is renamed": lambda run, _: rename_phase(run),
    "a submission is published": lambda run, _: publish_another(run),
    "a submission names its team": lambda run, _: name_another(run),
    "a run is scored": lambda run, _: score_another(run),
    "a run is re-evaluated": lambda run, _: requeue(run, actor=make_user()),
    "a submission is withdrawn": lambda run, _: withdraw(run.submission, owner_of(run.submission.team)),
    "a submission becomes a baseline": lambda run, _: mark_baseline(run.submission, True, make_user()),
    "a run is disqualified": lambda run, _: disqualify(run, "A reason.", make_user()),
    "a track is changed at the desk": lambda run, _: change_at_the_desk(run.submission.track),
    "a proof is decided on": lambda run, _: accept(run),
    "a rejection takes the rank": lambda run, _: reject_for_good(run.submission),
    "private scores are revealed": lambda run, _: reveal_private_scores(run),
    "a link is edited": lambda run, _: describe(
        run.submission, {"code_url": "https://example.org/code"}, owner_of(run.submission.team)
    ),
    "a proof is published": lambda run, _: publish_or_not(
        run.submission, True, owner_of(run.submission.team)
    ),
    "a team is renamed": rename_team,
    "a track is edited": edit_track,
    "a track is loaded from its file": lambda run, _: save_tracks(
        [Definition("privacy", {"budgets": [1, 4]})]
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_change_gives_the_boards_a_new_version(client, django_capture_on_commit_callbacks, run, change):
    track = run.submission.track_id
    before = boards_versions([track])
    change(run, client)
    assert boards_versions([track]) != before


@pytest.mark.parametrize(
    ("before", "after"),
    [(before, after) for before, all_ in RUN_TRANSITIONS.items() for after in sorted(all_)],
)
def test_every_move_of_a_run_onto_a_board_or_off_it_does(before, after):
    run = make_run(make_submission(state="submitted"), state=before, **SCORES)
    track = run.submission.track_id
    version = boards_versions([track])
    fields: dict[str, Any] = {"scored_at": timezone.now()} if after == RunState.SCORED else {}
    move_run(run, after, **fields)
    assert (boards_versions([track]) != version) == (RunState.SCORED in {before, after})


def test_boards_of_other_tracks_keep_their_version(run):
    other = make_track().pk
    before = boards_versions([other])
    withdraw(run.submission, owner_of(run.submission.team))
    assert boards_versions([other]) == before


def test_what_is_rolled_back_leaves_the_version_as_it_was(run):
    track = run.submission.track_id
    before = boards_versions([track])
    with transaction.atomic():
        withdraw(run.submission, owner_of(run.submission.team))
        transaction.set_rollback(True)
    assert boards_versions([track]) == before


def test_it_is_known_of_every_column_that_a_board_reads_what_changes_it(client, run):
    make_run(make_submission(track=make_track("bytes", slug="bytes"), state="submitted"), state="scored")
    rejected = make_submission(track=run.submission.track, state="submitted")
    make_run(rejected, budget=4.0, state="scored")
    decided = {"decision": Decision.REJECTED, "reason": "a reason", "decided_at": timezone.now()}
    for _ in range(2):
        ProofReview.objects.create(submission=rejected, reviewer=make_reviewer(), **decided)
    with CaptureQueriesContext(connection) as queries:
        for slug in ("privacy", "bytes"):
            for address in (
                f"/leaderboard/{slug}/",
                f"/leaderboard/{slug}/?verified=1&code=1&baselines=none&q=m&best=1&sort=anls",
                *(["/leaderboard/privacy/?epsilon=4"] if slug == "privacy" else []),
                f"/leaderboard/{slug}.csv",
                f"/api/v1/leaderboards/{slug}",
                "/",
            ):
                assert client.get(address).status_code == 200
    read = set()
    for query in queries.captured_queries:
        sql = re.sub(r'\b(U\d+)"', r'\1"', query["sql"]).replace('U0"."', 'reviews_proofreview"."')
        read |= {f"{table}.{column}" for table, column in re.findall(r'"(\w+)"\."(\w+)"', sql)}
    tables = {name.partition(".")[0] for name in COLUMNS}
    assert {name for name in read if name.partition(".")[0] in tables} == COLUMNS.keys()


def test_every_function_that_saves_such_a_column_is_known():
    root = Path(docvqa_site.__path__[0])
    found = {
        f"{path.relative_to(root)}:{function.name}"
        for path in root.rglob("*.py")
        if "migrations" not in path.parts and path.parts[-2] not in {"accounts", "uploads", "standalone"}
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef) and any(map(_saves, ast.walk(function)))
    }
    assert found == WRITERS


def _saves(node: ast.AST) -> bool:
    """Whether a call saves one of the columns, or all of a row."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    if node.func.attr in {"update", "bulk_update"}:
        return bool(WRITTEN & {keyword.arg for keyword in node.keywords})
    if node.func.attr != "save":
        return False
    fields = [keyword.value for keyword in node.keywords if keyword.arg == "update_fields"]
    names = [item for value in fields if isinstance(value, ast.List) for item in value.elts]
    literal = {item.value for item in names if isinstance(item, ast.Constant)}
    return not fields or len(literal) < len(names) or not names or bool(WRITTEN & literal)
