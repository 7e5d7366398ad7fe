import json

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction

from docvqa_site.submissions.models import Run, RunState
from evaluator.messages.results import RunResults
from tests.docvqa_site.factories import SCORES, change_results, make_epsilons, make_run

pytestmark = pytest.mark.django_db

RESULTS = RunResults(
    **SCORES,
    epsilon=0.1 + 0.2,
    epsilons=make_epsilons(0.1 + 0.2, None, 5e-324),
    checks=[{"id": "record.budget", "status": "passed"}],
)


@pytest.fixture
def run():
    return make_run(state=RunState.SCORED, **RESULTS.model_dump())


def test_results_come_back_to_the_bit(run):
    assert Run.objects.get(pk=run.pk).results == RESULTS


def test_the_document_has_only_what_there_is(run):
    with connection.cursor() as cursor:
        cursor.execute("SELECT results FROM submissions_run")
        (document,) = cursor.fetchone()
    assert set(json.loads(document)) == {*SCORES, "epsilon", "epsilons", "checks"}


def test_results_from_before_checks_had_names_are_read_with_the_names(run):
    with connection.cursor() as cursor:
        cursor.execute("SELECT results FROM submissions_run")
        (document,) = cursor.fetchone()
        cursor.execute("UPDATE submissions_run SET results = %s", [document.replace("record.budget", "C1")])
    assert Run.objects.get(pk=run.pk).results == RESULTS


def test_a_result_can_be_looked_up(run):
    assert Run.objects.filter(results__anls__gt=0.5).values_list("results__anls", flat=True).get() == 0.9


def test_the_number_of_flagged_checks_is_stored_beside_them(run):
    assert not Run.objects.filter(flagged_checks__gt=0).exists()
    for flagged in (2, 0):
        checks = [{"id": f"log.{'ab'[number]}", "status": "flagged"} for number in range(flagged)]
        change_results(run, checks=checks)
        assert list(Run.objects.values_list("flagged_checks", flat=True)) == [flagged or None]
    assert Run.objects.get().results.flagged_checks == 0


@pytest.mark.parametrize("missing", ["anls", "bytes_total", "trust_level"])
def test_the_database_rejects_a_scored_run_without_its_scores(missing):
    with pytest.raises(IntegrityError, match="scored_runs_have_scores"), transaction.atomic():
        make_run(state=RunState.SCORED, **{missing: None})


def test_a_dump_is_loaded_again(run, tmp_path):
    file = tmp_path / "runs.json"
    call_command("dumpdata", "submissions.run", output=file)
    Run.objects.update(results=RunResults(), state=RunState.REJECTED, scored_at=None)
    call_command("loaddata", file, verbosity=0)
    assert Run.objects.get().results == RESULTS


def test_no_digit_is_stored_that_is_not_shown():
    run = make_run(
        state=RunState.SCORED, anls=0.82419999, accuracy=0.71239, anls_low=0.8111222, anls_high=0.8301
    )
    shown = {"anls": 0.8241, "accuracy": 0.7123, "anls_low": 0.811, "anls_high": 0.831}
    for results in (run.results, Run.objects.get().results):
        assert results.model_dump(include=set(shown)) == shown
    assert Run.objects.values_list("anls", "anls_low", "anls_high").get() == (0.8241, 0.811, 0.831)
