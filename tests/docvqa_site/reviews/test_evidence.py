import pytest
from django.urls import reverse

from docvqa_site.evaluation.display.status import statuses
from docvqa_site.evaluation.models import Evaluation, StepReport
from docvqa_site.reviews.checklist import CHECKLIST
from docvqa_site.reviews.declared import DECLARED, adapter_rank, sampling_rates
from docvqa_site.reviews.evidence import CHECKS_OF, STATED, facts_on, in_words
from docvqa_site.submissions.models import RunState
from evaluator.mechanisms.events import Gaussian, PoissonGaussian, TwoStage
from evaluator.mechanisms.sampling import FixedSize, RandomAllocation
from evaluator.messages.jobs import ArtifactKind, Step
from evaluator.records.check_table import CHECKS
from tests.docvqa_site.evaluation.messages import make_accounting
from tests.docvqa_site.factories import (
    change_results,
    make_reviewer,
    make_run,
    scored_submission,
)
from tests.docvqa_site.submissions.records import record_of
from tests.evaluator.records.checked import adapter
from tests.evaluator.records.factories import run_line


def test_it_names_only_questions_and_checks_that_exist():
    items = [*(one.items for one in STATED), *(one.items for one in DECLARED)]
    stated = {item for of_one in items for item in of_one}
    assert CHECKS_OF.keys() | stated <= {item.key for item in CHECKLIST}
    assert {check for checks in CHECKS_OF.values() for check in checks} <= CHECKS.keys()


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (Gaussian(effective_noise_multiplier=4), "1 round: Gaussian noise, effective noise multiplier 4"),
        (
            TwoStage(
                client_rate=0.2,
                within=PoissonGaussian(sampling_rate=0.1, effective_noise_multiplier=1.5),
                rounds=30,
            ),
            "30 rounds: client rate 0.2; within a client, Poisson-sampled Gaussian noise, sampling rate 0.1, "
            "effective noise multiplier 1.5",
        ),
    ],
)
def test_a_release_is_put_in_words(event, words):
    assert in_words(event) == words


@pytest.fixture
def accounted(db):
    """A submission with a run whose record claims another ε than the evaluator found, and that report."""
    submission = scored_submission()
    run = submission.runs.get()
    result = make_accounting(run, epsilon=0.98765, epsilon_claimed=0.9)
    evaluation = Evaluation.objects.create(run=run, attempt=1, step=Step.SCORING, state="passed")
    StepReport.objects.create(
        evaluation=evaluation, step=Step.ACCOUNTING, outcome="passed", result=result.model_dump(mode="json")
    )
    change_results(run, checks=[{"id": "record.providers", "status": "flagged", "found": "18 providers"}])
    return submission, result


def facts(submission):
    return {
        fact.key: fact
        for fact in facts_on(submission, statuses(submission.runs.all()), submission.proof()).facts
    }


def test_what_the_record_declares_is_a_fact(accounted, settings):
    submission, _ = accounted
    record = submission.artifacts.get(kind=ArtifactKind.TRAINING_RECORD)
    file = settings.STORE_FOLDER / "objects" / record.upload.store_key
    file.write_bytes(record_of("token-0000000000000001"))
    found = facts(submission)
    assert {key: found[key].cells[0].text for key in ("placement", "codec", "replayable", "server_step")} == {
        "placement": "by the server, to the sum",
        "codec": "none, 32 bits per number",
        "replayable": "no",
        "server_step": "sum, learning rate 1",
    }


def test_the_settings_name_the_rank_of_adapters_and_how_providers_are_drawn():
    assert adapter_rank(run_line()) == ""
    assert adapter_rank(run_line(trainable=adapter(4), lora_scale=2.0)) == "4 (lora)"
    assert sampling_rates(run_line()) == ("all", "0.25")
    fixed = FixedSize(clients_per_round=1, providers_per_client=2, fewest_providers=8)
    assert sampling_rates(run_line(sampling=fixed)) == ("0.5", "0.25, fixed size")
    allocated = RandomAllocation(rounds_per_cycle=20)
    assert sampling_rates(run_line(sampling=allocated)) == ("all", "once in 20 rounds")


def test_the_claimed_epsilon_is_beside_the_recomputed_one(accounted):
    found = facts(accounted[0])
    assert found["claimed"].cells[0].text == "0.9"
    assert found["recomputed"].cells[0].text == "0.98765 (+0.088)"


@pytest.mark.parametrize(("norms", "text"), [(None, ""), ((0.5, 0.5), "0.5"), ((0.1, 0.5), "0.1 to 0.5")])
def test_the_clip_norm_is_beside_the_question_on_sensitivity(accounted, norms, text):
    submission, result = accounted
    StepReport.objects.update(result=result.model_copy(update={"clip_norms": norms}).model_dump(mode="json"))
    found = facts(submission)["clip_norm"]
    assert (found.cells[0].text, found.items[0]) == (text, "sensitivity")


def test_numbers_are_written_as_in_the_table_of_checks(accounted):
    submission, _ = accounted
    checks = [{"id": "record.bytes", "status": "passed", "found": "147456000 bytes at 1e-05"}]
    change_results(submission.runs.get(), checks=checks)
    found = facts(submission)
    assert found["record.bytes"].cells[0].text == "147,456,000 bytes at 10⁻⁵"
    assert found["delta"].cells[0].text == "10⁻⁵"


def test_a_question_leads_to_the_facts_that_bear_on_it(client, accounted):
    submission, _ = accounted
    client.force_login(make_reviewer())
    page = client.get(reverse("reviews:desk", args=[submission.pk])).text
    link = page.index('href="#fact-record.providers"')
    assert (
        page.index("Does the sampling assumed in the accounting match") < link < page.index('name="sampling"')
    )
    # Its outcome is there, too, and a short value; a long one is in the table alone.
    at_question = page[link:][: page[link:].index("</p>")]
    assert "</a>: flagged" in at_question
    noise = page[page.index('id="item-recomputed"') :]
    assert ">ε claimed</a>: 0.9 " in noise
    releases = page[page.index('href="#fact-releases"') :]
    assert "Releases and their noise</a>:" not in releases[: releases.index("</p>")]
    row = page[page.index('id="fact-record.providers"') :]
    row = row[: row.index("</tr>")]
    assert "18 providers" in row
    # And back.
    assert '<a href="#item-sampling">sampling</a>' in row
    assert "3 rounds: Gaussian noise, effective noise multiplier 4" in page
    assert "1 issued, 0 used by a run" in page


def test_numbers_of_checks_are_written_as_in_the_list_of_checks(accounted):
    submission, _ = accounted
    check = {"id": "record.bytes", "status": "passed", "found": "460636160 bytes"}
    change_results(submission.runs.get(), checks=[check])
    assert facts(submission)["record.bytes"].cells[0].text == "460,636,160 bytes"


def test_a_report_of_another_version_leaves_the_other_evidence(accounted):
    submission, _ = accounted
    StepReport.objects.update(result={"kind": "accounting", "unknown": 1})
    found = facts(submission)
    assert found["record.providers"].worst.status == "flagged"
    assert "recomputed" not in found


def test_a_fact_has_one_row_and_what_is_the_same_one_cell(db):
    submission = scored_submission()
    first = submission.runs.get()
    for budget, found in ((4, "18 providers"), (8, "17 providers")):
        change_results(make_run(submission, budget=budget, state=RunState.SCORED), checks=[providers(found)])
    change_results(first, checks=[providers("18 providers")])
    table = facts_on(submission, statuses(submission.runs.all()), submission.proof())
    ((fact, cells, _),) = [row for row in table.rows if row[0].key == "record.providers"]
    assert [(cell.text, len(runs)) for cell, runs in cells] == [("18 providers", 2), ("17 providers", 1)]
    assert fact.is_passed


def test_a_long_text_has_a_line_of_its_own_and_is_there_once(db):
    submission = scored_submission()
    first = submission.runs.get()
    long = "18 providers of which each took part in a round of its own"
    for budget in (4, 8):
        change_results(make_run(submission, budget=budget, state=RunState.SCORED), checks=[providers(long)])
    change_results(first, checks=[providers("18 providers")])
    table = facts_on(submission, statuses(submission.runs.all()), submission.proof())
    ((_, cells, texts),) = [row for row in table.rows if row[0].key == "record.providers"]
    assert [(cell.text, len(runs)) for cell, runs in cells] == [("", 3)]
    assert sorted(texts) == sorted([("4, 8", long), ("1", "18 providers")])
    assert table.tally == "1 passed"
    change_results(first, checks=[providers(long)])
    assert not facts(submission)["record.providers"].is_long


def test_the_questions_come_without_scrolling_past_the_facts(client, accounted):
    submission, _ = accounted
    client.force_login(make_reviewer())
    page = client.get(reverse("reviews:desk", args=[submission.pk])).text
    assert '<details class="card recorded">' in page
    assert "Checks that bear on the questions: 1 flagged" in page


def providers(found):
    return {"id": "record.providers", "status": "passed", "found": found}
