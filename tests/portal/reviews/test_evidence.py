import pytest
from django.urls import reverse

from evaluator.mechanisms.events import Gaussian, PoissonGaussian, TwoStage
from evaluator.messages.jobs import Step
from evaluator.records.check_table import CHECKS
from portal.evaluation.display.status import statuses
from portal.evaluation.models import Evaluation, StepReport
from portal.reviews.checklist import CHECKLIST
from portal.reviews.evidence import CHECKS_OF, evidence_on, in_words, recorded
from portal.submissions.models import RunState
from tests.portal.evaluation.messages import make_accounting
from tests.portal.factories import change_results, make_run
from tests.portal.reviews.test_decisions import make_reviewer, scored_submission


def test_it_names_only_questions_and_checks_that_exist():
    assert CHECKS_OF.keys() <= {item.key for item in CHECKLIST}
    assert {check for checks in CHECKS_OF.values() for check in checks} <= CHECKS.keys()


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (Gaussian(effective_noise_multiplier=4), "1 round: gaussian, effective noise multiplier 4"),
        (
            TwoStage(
                client_rate=0.2,
                within=PoissonGaussian(sampling_rate=0.1, effective_noise_multiplier=1.5),
                rounds=30,
            ),
            "30 rounds: client rate 0.2, within a client poisson gaussian, sampling rate 0.1, "
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


def test_the_claimed_epsilon_is_beside_the_recomputed_one(accounted):
    (text,) = recorded(accounted[1])["recomputed"]
    assert text == "claimed 0.9, recomputed 0.98765, difference +0.088"


def test_the_page_has_the_evidence_at_its_question(client, accounted):
    submission, _ = accounted
    client.force_login(make_reviewer())
    page = client.get(reverse("reviews:desk", args=[submission.pk])).text
    sampling = page.index("record.providers sampled providers: 18 providers")
    assert page.index("Does the accounted sampling match") < sampling < page.index('name="sampling"')
    assert "3 rounds: gaussian, effective noise multiplier 4" in page
    assert "1 issued, 0 used by a run" in page


def test_a_report_of_another_version_leaves_the_other_evidence(accounted):
    submission, _ = accounted
    StepReport.objects.update(result={"kind": "accounting", "unknown": 1})
    found = evidence_on(submission, statuses(submission.runs.all()))
    assert [one.status for one in found["sampling"]] == ["flagged"]
    assert "recomputed" not in found


def test_what_is_the_same_in_several_runs_is_said_once(db):
    submission = scored_submission()
    first = submission.runs.get()
    for budget, found in ((4, "18 providers"), (8, "17 providers")):
        change_results(make_run(submission, budget=budget, state=RunState.SCORED), checks=[providers(found)])
    change_results(first, checks=[providers("18 providers")])
    texts = [one.text for one in evidence_on(submission, statuses(submission.runs.all()))["sampling"]]
    assert texts == [
        "ε\xa0=\xa01, 4: record.providers sampled providers: 18 providers",
        "ε\xa0=\xa08: record.providers sampled providers: 17 providers",
    ]


def providers(found):
    return {"id": "record.providers", "status": "passed", "found": found}
