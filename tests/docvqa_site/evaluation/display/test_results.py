"""The ε, the trust level and the checks on the page of a submission, and who sees them."""

import re

import pytest
import yaml
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.timezone import localdate

from docvqa_site.audit.versions import boards_changed
from docvqa_site.evaluation.display import results
from docvqa_site.evaluation.examining.levels import MEANINGS
from docvqa_site.evaluation.models import Evaluation, EvaluationState
from docvqa_site.submissions.models import RunState
from docvqa_site.submissions.services import withdraw
from docvqa_site.ui.budgets import budget_text
from evaluator.accounting.accountant import Accountant
from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.messages.jobs import ArtifactKind, Check, CheckStatus, Outcome, Step, TrustLevel
from evaluator.messages.results import RunResults
from evaluator.records.check_table import CHECKS
from tests.docvqa_site.factories import (
    change_results,
    make_artifact,
    make_epsilons,
    make_organizer,
    make_run,
    make_submission,
    make_team,
    make_token,
    make_track,
)
from tests.docvqa_site.submissions.drafts import make_private_track

pytestmark = pytest.mark.django_db

CHECKS_OF_A_RUN = [
    {
        "id": "log.message_sizes",
        "status": "flagged",
        "expected": "1 to 64 bits",
        "found": "client 7 sent 0.1",
        "where": "round 2",
    },
    {
        "id": "record.rounds",
        "status": "passed",
        "expected": "30 rounds declared",
        "found": "30 rounds recorded",
    },
    {"id": "record.providers", "status": "passed", "expected": "about 17 providers", "found": "18 providers"},
    {"id": "team.joint_epsilon", "status": "not_applicable", "found": "2 trainings: a reason"},
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


def page(run, user=None, part=""):
    client = Client()
    if user:
        client.force_login(user)
    return client.get(run.submission.get_absolute_url() + part).content.decode()


def evidence(run, user=None):
    return page(run, user, f"runs/{run.pk}/")


class TestEpsilon:
    def test_the_page_shows_every_epsilon_and_whether_the_one_that_decides_is_within(self, run):
        html = evidence(run)
        assert all(number in html for number in ("3.9001", "3.1", "4.2"))
        assert "within budget" in html
        assert html.count(">used for ranking<") == 1
        assert "PLD, evaluator 1, grid 1e-4" in html

    def test_an_epsilon_over_the_budget_is_called_so(self, run):
        beyond = [one.model_copy(update={"within_budget": False}) for one in run.results.epsilons]
        change_results(run, epsilon=4.1, epsilons=beyond)
        assert "over budget" in evidence(run)

    def test_the_joint_epsilon_is_shown_with_the_number_of_trainings(self, run):
        assert "6.5" in evidence(run)
        html = evidence(run)
        assert "in total for this training run and the team's 1 before it in this track" in html
        assert "this is run 2 of 2" in html
        for one in (run, make_run(run.submission, budget=8.0), make_run(run.submission, budget=1.0)):
            make_token(run.submission.team, run.submission.track, run=one)
        assert "this is run 2 of 3" in evidence(run)
        assert '<div class="muted small">training run 2</div>' in page(run)
        change_results(run, joint_epsilon=None)
        assert "see check <code>team.joint_epsilon</code> for the reason" in evidence(run)

    @pytest.mark.parametrize(
        ("rule", "accountant", "expected"),
        [
            (SamplingRule.TWO_STAGE, Accountant.PLD, [("two_stage", "pld", 3.900001)]),
            (SamplingRule.PRODUCT, Accountant.PLD, [("product", "pld", 3.1)]),
            (SamplingRule.PRODUCT, Accountant.RDP, [("product", "rdp", 4.2)]),
        ],
    )
    def test_the_deciding_one_is_marked_and_comes_first(self, rule, accountant, expected):
        epsilons = make_epsilons(3.900001, 3.1, 4.2, rule=rule, accountant=accountant)
        rows = results.epsilon_rows(RunResults(epsilons=epsilons))
        assert [(row.sampling_rule, row.accountant, row.epsilon) for row in rows if row.decides] == expected
        assert rows[0].decides

    def test_without_a_budget_there_is_none(self):
        html = evidence(make_run(state=RunState.SCORED, bytes_needed=900_000))
        assert "Sampling rule" not in html
        assert "900 kB" in html


def test_the_trust_level_is_explained(run):
    assert "L0 recomputed" in evidence(run)
    assert MEANINGS[TrustLevel.RECOMPUTED] in evidence(run)
    assert set(MEANINGS) == set(TrustLevel)


class TestMembership:
    BOUNDS = {
        "balanced_accuracy": 0.6781,
        "true_positive_rates": [{"false_positive_rate": 0.01, "at_most": 0.0806}],
        "gaussian_mu": 0.98,
    }

    def test_what_an_attack_can_learn_is_said_in_words(self, run):
        assert "Someone who guesses at random" not in evidence(run)
        change_results(run, membership=self.BOUNDS)
        html = evidence(run)
        assert "is right at most <strong>67.9%</strong> of the time" in html
        assert "At a false-positive rate of 1%, at most 8.1% of training providers can be identified" in html
        assert "μ = 0.98" in html

    def test_where_nothing_is_protected_it_says_so(self, run):
        change_results(run, membership=self.BOUNDS | {"balanced_accuracy": 1.0, "gaussian_mu": None})
        assert "There is no limit on how reliably an attacker can tell" in evidence(run)


class TestRank:
    def test_what_keeps_a_run_from_a_rank_is_on_its_page(self, run):
        assert "not ranked" not in page(run)
        assert "<strong>#1</strong> at ε\xa0=\xa04" in page(run)
        beyond = [one.model_copy(update={"within_budget": False}) for one in run.results.epsilons]
        change_results(run, epsilon=4.1, epsilons=beyond)
        assert "not ranked (recomputed ε\xa0=\xa04.1000 exceeds the budget of 4)" in page(run)
        assert "ε 4.1000 &gt; 4" in page(run)

    def test_a_run_that_is_evaluated_again_keeps_its_result_meanwhile(self, run):
        type(run).objects.update(state=RunState.RUNNING)
        html = page(run)
        assert "re-evaluating" in html
        assert "this result stays until the new one is ready" in html
        assert "<strong>#1</strong> at ε\xa0=\xa04" in html


class TestVerdict:
    def review(self, run, decision, reason=""):
        reviewer = make_organizer("review_proofs")
        at = timezone.now()
        run.submission.reviews.create(reviewer=reviewer, decision=decision, reason=reason, decided_at=at)
        boards_changed(run.submission.track_id)

    def test_the_page_begins_with_what_the_reviewers_have_decided(self, run):
        assert "0 of 2 reviewers have accepted the privacy proof so far" in page(run)
        self.review(run, "accepted")
        assert "1 of 2 reviewers has accepted the privacy proof so far" in page(run)
        self.review(run, "accepted")
        assert "<strong>Proof accepted</strong> by" in page(run)
        self.review(run, "rejected", "No composition.")
        assert "<strong>Proof accepted</strong> by" in page(run)
        self.review(run, "rejected", "No composition.")
        html = page(run)
        assert "<strong>Proof rejected</strong>" in html
        assert "No composition." in html
        assert "rank-chip" not in html
        assert html.index("Proof rejected") < html.index('id="results"') < html.index('id="description"')

    def test_the_page_says_when_a_reviewer_proposes_to_reject_and_when_reviewers_disagree(self, run):
        self.review(run, "rejected", "No composition.")
        proposal = "Under review: one reviewer proposes to reject the proof; a second opinion is due."
        assert f"<strong>{proposal}</strong>" in page(run)
        self.review(run, "accepted")
        html = page(run)
        assert "<strong>Under review: reviewers disagree; a third reviewer needs to decide.</strong>" in html
        assert "No composition." not in html
        assert "rank-chip" in html

    def test_the_progress_of_an_evaluation_that_ended_is_for_the_team(self, run):
        assert "progress-" not in page(run)
        assert f'id="progress-{run.pk}"' in page(run, run.submission.created_by)


def test_the_page_shows_its_place_in_the_plot(run):
    html = page(run)
    mark = f'data-of="{run.submission.get_absolute_url()}" data-here'
    # Once in each of its drawings.
    assert html.count(mark) == 2
    plot = html[html.index(mark) :]
    assert plot.index("</svg>this method</li>") < plot.index("<summary>Data table")


def test_the_mark_of_a_method_lies_below_those_at_the_same_place(run):
    other = make_submission(track=run.submission.track, state="submitted")
    make_run(other, state=RunState.SCORED, budget=run.budget, epsilon=3.0, anls=run.results.anls)
    boards_changed(run.submission.track_id)
    for submission in (run.submission, other):
        drawings = re.findall(
            r'<svg class="plot-(?:wide|narrow)".*?</svg>', page(submission.runs.get()), re.DOTALL
        )
        assert len(drawings) == 2
        for drawing in drawings:
            marks = re.findall(r'<circle class="plot-mark[^>]*>', drawing)
            assert ["data-here" in mark for mark in marks] == [True, False]
            assert len(marks) == 2


def report_score(run, version, attempt=1):
    """Store the report by which an attempt scored the run."""
    evaluation = Evaluation.objects.create(run=run, attempt=attempt, state=EvaluationState.PASSED)
    evaluation.reports.create(
        step=Step.SCORING, outcome=Outcome.PASSED, provenance={"evaluator_version": version}
    )


class TestCitation:
    def test_it_has_a_permanent_link_and_an_entry_without_latex(self, client, run):
        type(run.submission).objects.update(title="100% {DP} & \\evil_")
        html = page(run)
        assert f"{settings.SITE_URL}{run.submission.get_absolute_url()}</a>" in html
        entry = client.get(reverse("submissions:bibtex", args=[run.submission.pk])).text
        assert entry.startswith(f"@misc{{pfl-docvqa-{str(run.submission.pk)[:8]},")
        assert r"{{100\% \{DP\} \& \textbackslash{}evil\_}}" in entry

    def test_it_names_what_was_measured_by_which_version_and_when(self, client, run):
        report_score(run, "0.0.9")
        report_score(run, "0.1.0", attempt=2)
        change_results(run, anls=0.81529, epsilon=3.99991, bytes_total=11_515_904)
        scores = "ANLS 0.8152, recomputed epsilon 4.0000, joint epsilon 6.5000, 11,515,904 bytes (counted)"
        found = f"At epsilon = 4: {scores}, trust level L0 recomputed"
        measured = f"{found}. Test set: {run.submission.track.test_set}"
        type(run.submission.track).objects.update(test_set="a-later-one")
        entry = client.get(reverse("submissions:bibtex", args=[run.submission.pk])).text
        assert f"{measured}. Status: under review}}," in entry
        assert "version      = {evaluator 0.1.0}," in entry
        assert f"urldate      = {{{localdate().isoformat()}}}," in entry
        citation = client.get(reverse("submissions:citation", args=[run.submission.pk])).text
        assert yaml.safe_load(citation)["abstract"] == f"{measured}. Status: under review"
        change_results(run, counting="declared")
        entry = client.get(reverse("submissions:bibtex", args=[run.submission.pk])).text
        assert "11,515,904 bytes (declared), trust level" in entry

    def test_it_has_the_joint_epsilon_of_a_named_team_and_the_trust_level(self, client, run):
        change_results(run, epsilon=1.0, joint_epsilon=4.11611, trust_level=0)
        address = reverse("submissions:bibtex", args=[run.submission.pk])
        entry = client.get(address).text
        assert "recomputed epsilon 1.0000, joint epsilon 4.1162, " in entry
        assert ", trust level L0 recomputed. " in entry
        type(run.submission).objects.update(anonymous=True, alias="Nobody")
        assert "joint epsilon" not in client.get(address).text

    def test_each_of_several_runs_has_an_entry_of_its_own(self, client, run):
        submission = run.submission
        other = make_run(
            submission, budget=8.0, state=RunState.SCORED, epsilon=7.5, anls=0.7, anls_low=0.6, anls_high=0.75
        )
        address = reverse("submissions:bibtex", args=[submission.pk])
        first, _, second = client.get(address).text.partition("\n\n")
        assert f"-epsilon-{run.budget:g}," in first
        assert f"-epsilon-{other.budget:g}," in second
        assert "At epsilon = 8: ANLS 0.7000 (95% interval 0.600 to 0.750)" in second.replace("\\%", "%")
        assert "At epsilon = 4" not in second
        assert f"{submission.get_absolute_url()}runs/{other.pk}/}}" in second
        html = page(run)
        for budget in (4, 8):
            assert f'aria-label="BibTeX entry, {budget_text(budget)}">@misc' in html
        type(submission).objects.update(anonymous=True, alias="Nobody")
        assert f"{submission.get_absolute_url()}#run-{other.pk}}}" in client.get(address).text

    def test_it_says_which_runs_were_found_invalid(self, client, run):
        submission, disqualified = run.submission, {"disqualified_because": "Forged."}
        addresses = [reverse(f"submissions:{name}", args=[submission.pk]) for name in ("bibtex", "citation")]
        type(run).objects.filter(pk=run.pk).update(**disqualified)
        for address in addresses:
            cited = " ".join(client.get(address).text.split())
            assert "Status: disqualified" in cited
            assert "under review" not in cited
        html = page(run)
        assert f"<strong>Disqualified at {budget_text(4)}.</strong>" in html
        assert "Under review" not in html
        assert "disqualified by the organizers: Forged." in html
        assert "<strong>Disqualified.</strong> The organizers' reason: Forged." in evidence(run)
        member = run.submission.team.memberships.get().user
        assert '<span class="badge badge-rejected">disqualified</span>' in page(run, member)
        client.force_login(member)
        assert (
            'badge-rejected">ε\xa0=\xa04: disqualified</span>' in client.get(reverse("submissions:list")).text
        )
        make_run(submission, budget=8.0, state=RunState.SCORED, epsilon=7.5)
        entries, citation = (" ".join(client.get(address).text.split()) for address in addresses)
        assert (
            citation.index("At epsilon = 4")
            < citation.index(", disqualified.")
            < citation.index("At epsilon = 8")
        )
        assert ", under review" in citation
        assert "Status: disqualified" in entries.partition("-epsilon-8,")[0]
        assert "Status: under review" in entries.partition("-epsilon-8,")[2]
        assert "<strong>Under review.</strong>" in page(run)

    def test_of_what_nobody_sees_there_is_none(self, client):
        address = reverse("submissions:bibtex", args=[make_run().submission.pk])
        assert client.get(address).status_code == 404


def test_a_withdrawn_submission_leaves_a_page_that_says_so(client, run):
    withdraw(run.submission, run.submission.created_by)
    response = client.get(run.submission.get_absolute_url())
    assert response.status_code == 410
    assert "The team withdrew this submission on" in response.text
    assert run.submission.title in response.text
    assert "0.9000" not in response.text


class TestChecks:
    def test_team_and_staff_read_everything(self, run):
        for user in (run.submission.created_by, make_organizer()):
            html = evidence(run, user)
            assert all(
                check.get(part, "") in html
                for check in CHECKS_OF_A_RUN
                for part in ("expected", "found", "where")
            )

    def test_the_public_reads_no_finding_of_a_private_run_from_an_annex_or_a_client(self, run):
        for user in (None, make_team().memberships.get().user):
            html = evidence(run, user)
            assert "1 flagged, 2 passed, 1 not applicable" in html
            assert "30 rounds recorded" in html
            for hidden in ("about 17 providers", "18 providers", "client 7", "1 to 64 bits", "round 2"):
                assert hidden not in html

    def test_with_the_public_files_everyone_reads_what_follows_from_them(self, run):
        found = {
            "log.directions": "300 exchanges",
            "record.clients": "41 of 42 clients",
            "record.annex": "0a1b",
        }
        checks = [{"id": name, "status": "passed", "found": text} for name, text in found.items()]
        change_results(run, checks=checks)
        for kind, shown in (
            (ArtifactKind.TRAINING_ANNEX, set()),
            (ArtifactKind.COMMUNICATION_LOG, {"300 exchanges"}),
            (ArtifactKind.TRAINING_RECORD, {"300 exchanges", "41 of 42 clients"}),
        ):
            make_artifact(run, kind, b"a file", "file")
            html = evidence(run)
            assert {text for text in found.values() if text in html} == shown
        assert html.count("restricted to the team and the organizers") == 1
        assert "Restricted values come from files that only the team" in html
        change_results(run, checks=checks[:2])
        assert "Restricted values come from files" not in evidence(run)

    def test_everyone_reads_what_a_noise_check_would_have_detected_but_not_what_it_flagged(self, run):
        checks = [
            {
                "id": "record.noise_size",
                "status": "passed",
                "found": "would have detected noise below 98%",
            },
            {"id": "record.noise_reuse", "status": "no_power", "found": "the updates may hide it"},
            {"id": "record.noise_shape", "status": "flagged", "found": "0.4711", "expected": "at most 0.01"},
        ]
        change_results(run, checks=checks)
        html = evidence(run)
        assert "would have detected noise below 98%" in html
        assert "the updates may hide it" in html
        assert '<span class="badge badge-no_power">no power</span>' in html
        assert "1 flagged, 1 no power, 1 passed" in html
        assert "hardly any power" not in html
        assert "0.4711" not in html
        assert "0.4711" in evidence(run, run.submission.created_by)

    def test_a_check_that_passed_with_hardly_any_power_is_marked_beside_its_badge(self, run):
        found = "would have detected the reuse or cancellation of 98.9% of a round's noise"
        change_results(run, checks=[{"id": "record.noise_reuse", "status": "passed", "found": found}])
        html = evidence(run)
        assert 'passed</span> <span class="badge badge-no_power">hardly any power</span>' in html
        assert "1 passed (1 with hardly any power)" in html

    def test_they_begin_with_what_each_group_excludes_and_leaves_open(self, run):
        ids = ("record.noise_size", "record.noise_shape", "record.models", "log.rounds")
        passed = [{"id": id_, "status": "passed"} for id_ in ids]
        weak = {"id": "record.linkage", "status": "no_power"}
        change_results(run, checks=[*passed, weak])
        summary = evidence(run).partition('<ul class="checks-summary">')[2].partition("</ul>")[0]
        text = " ".join(re.sub(r"<[^>]+>", "", summary).split())
        excluded, possible = results.SUMMARIES["Noise"]
        assert f"Noise, 2 passed. Excluded: {excluded} Still possible: {possible}" in text
        assert "From the noised sums to the model, 1 no power. No power: linkage. Still possible" in text
        assert text.index("Noise") < text.index("Training record, 1 passed") < text.index("Communication log")
        assert set(results.SUMMARIES) == set(results.SUBJECTS.values()) - {"Other checks"}

    def test_where_one_has_hardly_any_power_they_say_what_the_others_exclude(self, run):
        found = "would have detected the reuse or cancellation of 98.9% of a round's noise"
        weak = {"id": "record.noise_reuse", "status": "passed", "found": found}
        size, shape = ({"id": f"record.noise_{name}", "status": "passed"} for name in ("size", "shape"))
        change_results(run, checks=[size, weak, shape])
        summary = evidence(run).partition('<ul class="checks-summary">')[2].partition("</ul>")[0]
        text = " ".join(re.sub(r"<[^>]+>", "", summary).split())
        assert text.startswith(
            "Noise, 3 passed (1 with hardly any power). Excluded: noise that is much weaker than declared, "
            "and missing noise, in blocks that the site drew afterward. "
            "Hardly any power (only an extreme deviation would have been found): fresh noise in every round. "
            "Still possible"
        )
        change_results(run, checks=[size, weak, shape | {"status": "flagged"}])
        assert "Excluded:" not in evidence(run)

    def test_where_epsilon_plays_no_part_everyone_reads_everything(self):
        html = evidence(make_run(state=RunState.SCORED, checks=CHECKS_OF_A_RUN[:1]))
        assert "client 7 sent 0.1" in html

    def test_each_comes_with_its_meaning_and_its_limit(self, run):
        html = evidence(run)
        assert 'What this checks<span class="visually-hidden"> (' in html
        for shown in results.shown_checks(run):
            text = CHECKS[shown.check.id]
            assert (shown.name, shown.meaning, shown.limit) == (text.name, text.meaning, text.limit)
            assert shown.meaning

    def test_names_of_fields_in_its_meaning_are_code(self, run):
        change_results(run, checks=[{"id": "record.providers", "status": "passed"}])
        html = evidence(run)
        assert "<code>fewest_providers</code>" in html
        assert "`fewest_providers`" not in html

    def test_a_check_that_is_not_made_any_more_is_still_shown(self, run):
        change_results(run, checks=[{"id": "other.check", "status": "passed"}])
        assert "other.check" in evidence(run)

    def test_what_files_were_named_is_text(self, run):
        change_results(
            run, checks=[{"id": "record.tensors", "status": "flagged", "found": "<img src=x onerror=a>"}]
        )
        assert "<img src=x" not in evidence(run)

    def test_a_check_that_reads_the_annex_is_never_public(self):
        reading_the_annex = (
            "clients",
            "providers",
            "noise_size",
            "noise_reuse",
            "noise_shape",
            "annex",
            "linkage",
            "whole_change",
        )
        for name in reading_the_annex:
            assert not CHECKS[f"record.{name}"].findings.are_public(CheckStatus.FLAGGED)


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
    with django_assert_num_queries(25):
        client.get(run.submission.get_absolute_url())


def test_the_page_of_a_draft_has_no_results(client):
    submission = make_submission(track=make_track())
    make_run(submission)
    client.force_login(submission.created_by)
    assert "Trust level" not in client.get(submission.get_absolute_url()).content.decode()


@pytest.mark.parametrize(
    ("stated", "shown"),
    [
        ("2304 to 393216 bytes each way", "2,304 to 393,216 bytes each way"),
        ("1000 exchanges, all in both directions", "1,000 exchanges, all in both directions"),
        ("δ = 1e-05, ε = 1.2345", "δ = 10⁻⁵, ε = 1.2345"),
        (
            "on 2026-11-29: 0.999991 of 5a01b596387a, 99962873. End",
            "on 2026-11-29: 0.999991 of 5a01b596387a, 99,962,873. End",
        ),
    ],
)
def test_numbers_of_checks_are_shown_as_on_other_pages(stated: str, shown: str) -> None:
    check = Check(id="log.rounds", status=CheckStatus.PASSED, found=stated, expected=stated)
    displayed = results.ShownCheck(check, name="", meaning="", limit="", is_public=True)
    assert displayed.found == displayed.expected == shown
