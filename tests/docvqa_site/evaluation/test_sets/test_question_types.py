"""ANLS by type of question: which types are published, with how many digits, and on which part of the test set."""

import pytest

from docvqa_site.challenge.models import Track
from docvqa_site.evaluation import models
from docvqa_site.evaluation.intake.receiving import receive_report
from docvqa_site.evaluation.queue import dispatch
from docvqa_site.evaluation.test_sets.parts import reveal
from docvqa_site.evaluation.test_sets.question_types import MIN_QUESTIONS, question_types
from docvqa_site.submissions.models import Run, RunState
from evaluator.messages.jobs import ScoringDetail, Step
from tests.docvqa_site.evaluation.messages import (
    SPLIT,
    fresh,
    make_detail,
    make_group,
    make_report,
    make_result,
    on_both_parts,
)
from tests.docvqa_site.factories import make_run, make_submission, make_track, make_user

TOTAL = make_group(group="total", questions=MIN_QUESTIONS, anls=0.87654, anls_low=0.81234, anls_high=0.91234)
DATE = make_group(group="date", questions=5000, anls=0.5, anls_low=0.4, anls_high=0.6)


def names(*groups, part=""):
    return [one.name for one in question_types(ScoringDetail(groups=list(groups)), part)]


def test_types_are_in_the_order_of_their_frequency_which_the_worker_knows():
    assert names(make_group(by="all", group="all", questions=9000), DATE, TOTAL) == ["date", "total"]


@pytest.mark.parametrize(
    "hidden",
    [
        make_group(group="rare", questions=MIN_QUESTIONS - 1),
        make_group(group="other", questions=5000),
        make_group(group="of five providers", questions=5000, anls_low=0.0, anls_high=1.0),
        make_group(by="provider", group="seen", questions=MIN_QUESTIONS - 1),
        make_group(by="provider", group="seen", questions=5000, part="public"),
        make_group(by="part", group="public", questions=5000),
        make_group(group="total", questions=5000, part="private"),
    ],
    ids=lambda group: f"{group.by} {group.group} {group.part}",
)
def test_what_is_rare_or_no_type_or_in_another_part_is_not_shown(hidden):
    assert names(hidden, DATE) == ["date"]


def test_questions_about_seen_and_unseen_providers_come_last():
    providers = [make_group(by="provider", group=group, questions=5000) for group in ("seen", "unseen")]
    assert names(*providers, DATE) == ["date", "seen_providers", "unseen_providers"]


def report_score(evaluation, **fields) -> Run:
    for step in (Step.VALIDATE, Step.COMMUNICATION):
        receive_report(make_report(evaluation, step))
    evaluation.refresh_from_db()
    receive_report(make_report(evaluation, Step.SCORING, **fields))
    return fresh(evaluation.run)


@pytest.mark.django_db
def test_a_score_is_stored_with_two_decimals_and_its_interval_contains_the_exact_one():
    run = make_run(make_submission(track=make_track(), state="submitted"), state=RunState.QUEUED)
    evaluation = dispatch.start(run)
    run = report_score(
        evaluation, result=make_result(evaluation, Step.SCORING), detail=make_detail(DATE, TOTAL)
    )
    assert [one.model_dump() for one in run.results.question_types] == [
        {"name": "date", "anls": 0.5, "anls_low": 0.4, "anls_high": 0.6},
        {"name": "total", "anls": 0.87, "anls_low": 0.81, "anls_high": 0.92},
    ]
    assert "0.8765" not in run.results.model_dump_json()


def split_report(evaluation, public, private):
    """A report of a split test set with these ANLS of one type, and another one over both parts."""
    found = on_both_parts(evaluation, 0.8, 0.6, SPLIT)
    groups = [
        make_group(group="total", questions=9000, anls=0.7),
        make_group(group="total", questions=5000, part="public", anls=public),
        make_group(group="total", questions=4000, part="private", anls=private),
    ]
    return {**found, "detail": make_detail(*found["detail"].groups, *groups)}


@pytest.mark.django_db
def test_of_a_split_test_set_they_are_those_of_the_part_that_is_shown():
    track = make_track(test_set="secret")
    run = make_run(make_submission(track=track, state="submitted"), state=RunState.QUEUED)
    evaluation = dispatch.start(run)
    run = report_score(evaluation, **split_report(evaluation, 0.85, 0.55))
    assert [one.anls for one in run.results.question_types] == [0.85]
    Track.objects.update(paused=True)
    assert reveal(models.TestSet.objects.get(), "It is over.", actor=make_user()) == ""
    assert [one.anls for one in fresh(run).results.question_types] == [0.55]
    # A run that is scored from now on has them at once.
    Track.objects.update(paused=False)
    later = make_run(make_submission(track=track, state="submitted"), state=RunState.QUEUED)
    evaluation = dispatch.start(later)
    later = report_score(evaluation, **split_report(evaluation, 0.81, 0.51))
    assert [one.anls for one in later.results.question_types] == [0.51]
