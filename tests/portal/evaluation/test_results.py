"""The ε, the trust level and the checks on the page of a submission, and who sees them."""

import pytest
from django.test import Client

from evaluator.accounting.accountant import Accountant
from evaluator.checks import CHECKS
from evaluator.contracts import ArtifactKind, TrustLevel
from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.results import RunResults
from portal.evaluation import results
from portal.submissions.models import RunState
from tests.portal.factories import (
    change_results,
    make_artifact,
    make_epsilons,
    make_organizer,
    make_run,
    make_submission,
    make_team,
    make_track,
)
from tests.portal.submissions.drafts import make_private_track

pytestmark = pytest.mark.django_db

CHECKS_OF_A_RUN = [
    {
        "id": "P3",
        "status": "flagged",
        "expected": "1 to 64 bits",
        "found": "client 7 sent 0.1",
        "where": "round 2",
    },
    {"id": "C2", "status": "passed", "expected": "30 rounds declared", "found": "30 rounds recorded"},
    {"id": "C6", "status": "passed", "expected": "about 17 providers", "found": "18 providers"},
    {"id": "C15", "status": "not_applicable", "found": "2 trainings: a reason"},
]
PRIVACY = {
    "epsilon": 3.900001,
    "epsilons": make_epsilons(3.900001, 3.1, 4.2),
    "accountant": "PLD, evaluator 1, grid 1e-4",
    "joint_epsilon": 6.5,
    "joint_runs": 2,
}


@pytest.fixture
def run():
    submission = make_submission(track=make_private_track(), state="submitted")
    return make_run(submission, state=RunState.SCORED, budget=4.0, checks=CHECKS_OF_A_RUN, **PRIVACY)


def page(run, user=None, fragment=False):
    client = Client()
    if user:
        client.force_login(user)
    address = run.submission.get_absolute_url()
    return client.get(address + ("status/" if fragment else "")).content.decode()


class TestEpsilon:
    def test_the_page_shows_every_epsilon_and_the_margin_of_the_one_that_decides(self, run):
        html = page(run)
        assert all(number in html for number in ("3.9001", "3.1", "4.2"))
        assert "0.09999" in html  # to spare, rounded down
        assert html.count(">decides<") == 1
        assert "PLD, evaluator 1, grid 1e-4" in html

    def test_an_epsilon_over_the_budget_is_called_so(self, run):
        change_results(run, epsilon=4.1)
        assert "exceeds it" in page(run)

    def test_the_joint_epsilon_is_shown_with_the_number_of_trainings(self, run):
        assert "6.5" in page(run)
        assert "all 2 trainings together" in page(run)
        change_results(run, joint_epsilon=None)
        assert "check C15 says why" in page(run)

    @pytest.mark.parametrize(
        ("rule", "accountant", "expected"),
        [
            (SamplingRule.TWO_STAGE, Accountant.PLD, [("two-stage", "PLD", 3.900001)]),
            (SamplingRule.PRODUCT, Accountant.PLD, [("product", "PLD", 3.1)]),
            (SamplingRule.PRODUCT, Accountant.RDP, [("product", "RDP", 4.2)]),
        ],
    )
    def test_the_deciding_one_is_marked_and_comes_first(self, rule, accountant, expected):
        epsilons = make_epsilons(3.900001, 3.1, 4.2, rule=rule, accountant=accountant)
        rows = results.epsilon_rows(RunResults(epsilons=epsilons))
        assert [(row.rule, row.accountant, row.epsilon) for row in rows if row.decides] == expected
        assert rows[0].decides

    def test_without_a_budget_there_is_none(self):
        html = page(make_run(state=RunState.SCORED, bytes_needed=900_000))
        assert "Sampling rule" not in html
        assert "900 kB" in html


def test_the_trust_level_is_explained(run):
    assert "L0 recomputed" in page(run)
    assert results.TRUST[TrustLevel.RECOMPUTED] in page(run)
    assert set(results.TRUST) == set(TrustLevel)


class TestMembership:
    BOUNDS = {
        "balanced_accuracy": 0.6781,
        "true_positive_rates": [{"false_positive_rate": 0.01, "at_most": 0.0806}],
        "gaussian_mu": 0.98,
    }

    def test_what_an_attack_can_learn_is_said_in_words(self, run):
        assert "right more often" not in page(run)
        change_results(run, membership=self.BOUNDS)
        html = page(run)
        assert "nobody is right more often than <strong>67.9\xa0%</strong>" in html
        assert (
            "Who wrongly names 1\xa0% of those who were not in it finds at most 8.1\xa0% of those who were"
            in html
        )
        assert "μ = 0.98" in html

    def test_where_nothing_is_protected_it_says_so(self, run):
        change_results(run, membership=self.BOUNDS | {"balanced_accuracy": 1.0, "gaussian_mu": None})
        assert "Nothing keeps anybody from finding out" in page(run)


class TestRank:
    def test_what_keeps_a_run_from_a_rank_is_on_its_page(self, run):
        assert "No rank" not in page(run)
        change_results(run, epsilon=4.1)
        assert "No rank: recomputed ε = 4.1 exceeds the budget 4." in page(run)

    def test_a_run_that_is_evaluated_again_is_not_judged_yet(self, run):
        change_results(run, epsilon=4.1)
        type(run).objects.update(state=RunState.RUNNING)
        assert "No rank" not in page(run, run.submission.created_by)


class TestChecks:
    @pytest.mark.parametrize("fragment", [False, True])
    def test_team_and_staff_read_everything(self, run, fragment):
        for user in (run.submission.created_by, make_organizer()):
            html = page(run, user, fragment)
            assert all(
                check.get(part, "") in html
                for check in CHECKS_OF_A_RUN
                for part in ("expected", "found", "where")
            )

    @pytest.mark.parametrize("fragment", [False, True])
    def test_the_public_reads_no_finding_of_a_private_run_from_an_annex_or_a_client(self, run, fragment):
        for user in (None, make_team().memberships.get().user):
            html = page(run, user, fragment)
            assert "1 flagged, 2 passed, 1 not applicable" in html
            assert "30 rounds recorded" in html
            for hidden in ("about 17 providers", "18 providers", "client 7", "1 to 64 bits", "round 2"):
                assert hidden not in html

    def test_everyone_reads_what_a_noise_check_would_have_detected_but_not_what_it_flagged(self, run):
        checks = [
            {"id": "C8", "status": "passed", "found": "noise below 98 % would have been detected"},
            {"id": "C9", "status": "no_power", "found": "the updates may hide it"},
            {"id": "C22", "status": "flagged", "found": "0.4711", "expected": "at most 0.01"},
        ]
        change_results(run, checks=checks)
        html = page(run)
        assert "noise below 98 % would have been detected" in html
        assert "the updates may hide it" in html
        assert '<span class="badge badge-no_power">no power</span>' in html
        assert "1 flagged, 1 no power, 1 passed" in html
        assert "0.4711" not in html
        assert "0.4711" in page(run, run.submission.created_by)

    def test_where_epsilon_plays_no_part_everyone_reads_everything(self):
        html = page(make_run(state=RunState.SCORED, checks=CHECKS_OF_A_RUN[:1]))
        assert "client 7 sent 0.1" in html

    def test_each_comes_with_its_meaning_and_its_limit(self, run):
        html = page(run)
        assert "What it says" in html
        for shown in results.shown_checks(run):
            text = CHECKS[shown.check.id]
            assert (shown.name, shown.meaning, shown.limit) == (text.name, text.meaning, text.limit)
            assert shown.meaning

    def test_a_check_that_is_not_made_any_more_is_still_shown(self, run):
        change_results(run, checks=[{"id": "C99", "status": "passed"}])
        assert "C99" in page(run)

    def test_what_files_were_named_is_text(self, run):
        change_results(run, checks=[{"id": "C10", "status": "flagged", "found": "<img src=x onerror=a>"}])
        assert "<img src=x" not in page(run)

    def test_a_check_that_reads_the_annex_is_never_public(self):
        assert not results.PUBLIC_FINDINGS & {"C5", "C6", "C8", "C9", "C17"}


def test_the_annex_is_given_to_nobody(run):
    """Its name and hash stand in the team's own list of files; no page or address of the site hands it out."""
    upload = make_artifact(run, ArtifactKind.TRAINING_ANNEX, b"round 1: 17 providers", "annex.jsonl").upload
    member = run.submission.created_by
    for user in (None, member, make_team().memberships.get().user):
        html = page(run, user)
        assert "17 providers" not in html.replace("about 17 providers", "")
        assert upload.store_key not in html
        assert ("annex.jsonl" in html) == (user == member)
        client = Client()
        if user:
            client.force_login(user)
        assert client.get(f"/reviews/{run.submission.pk}/proof/").status_code in (302, 404)
        assert client.get(f"/uploads/{upload.store_key}").status_code in (403, 404)


def test_the_queries_of_the_page_stay_the_same_for_more_checks(client, run, django_assert_num_queries):
    change_results(run, checks=CHECKS_OF_A_RUN * 20)
    with django_assert_num_queries(5):
        client.get(run.submission.get_absolute_url())


def test_the_page_of_a_draft_has_no_results(client):
    submission = make_submission(track=make_track())
    make_run(submission)
    client.force_login(submission.created_by)
    assert "Trust level" not in client.get(submission.get_absolute_url()).content.decode()
