"""The page of a run's evidence, and the files that everybody may check it by."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from docvqa_site.boards.published import publish_all
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.docs import library
from docvqa_site.evaluation.intake.accounting import EVENTS
from docvqa_site.evaluation.models import Evaluation, EvaluationState, StepReport
from docvqa_site.pages import run as run_page
from docvqa_site.reviews.models import Recusal
from docvqa_site.submissions.models import Run, RunState, Submission, SubmissionState
from docvqa_site.uploads.models import Upload, UploadState
from evaluator.mechanisms.events import Gaussian, TwoStage
from evaluator.messages.jobs import ArtifactKind, Outcome, Step
from tests.docvqa_site.factories import (
    change_results,
    make_artifact,
    make_reviewer,
    make_run,
    make_submission,
    make_team,
    make_track,
    owner_of,
)

pytestmark = pytest.mark.django_db
RECORD, LOG, ANNEX = (
    ArtifactKind.TRAINING_RECORD,
    ArtifactKind.COMMUNICATION_LOG,
    ArtifactKind.TRAINING_ANNEX,
)


@pytest.fixture
def run() -> Run:
    track = make_track(BEST_ANLS_AT_BUDGET, slug="track", budgets=[4, 8], allows_private=True)
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED)
    run = make_run(submission, state=RunState.SCORED, budget=4, epsilon=3.0, accountant="pld")
    for kind in (RECORD, LOG, ANNEX):
        make_artifact(run, kind, f"the {kind}".encode(), f"{kind}.txt")
    return run


def file_of(client: Client, run: Run, kind: str) -> bytes | None:
    """The file as everybody gets it; None where there is no such page."""
    response = client.get(
        reverse("submissions:evidence", args=[run.submission_id, run.pk, kind]), follow=True
    )
    return None if response.status_code == 404 else b"".join(response)


def test_reviewers_find_the_way_back_to_the_review(client: Client, run: Run) -> None:
    way = f'href="{reverse("reviews:desk", args=[run.submission_id])}">Back to the review</a>'
    page = reverse("submissions:run", args=[run.submission_id, run.pk])
    assert way not in client.get(page).text
    client.force_login(owner_of(run.submission.team))
    assert way not in client.get(page).text
    client.force_login(reviewer := make_reviewer())
    assert way in client.get(page).text
    reviewer.recusals.create(submission=run.submission, why=Recusal.Why.CONFLICT)
    assert way not in client.get(page).text


def test_the_page_of_evidence_begins_with_the_rank_and_the_status_of_the_review(
    client: Client, run: Run
) -> None:
    publish_all(run.submission.track)
    page = client.get(reverse("submissions:run", args=[run.submission_id, run.pk])).text
    head = page[page.index("<h1>") :].partition("</header>")[0]
    assert '<span class="badge badge-provisional">#1, under review</span>' in head


def test_everybody_may_read_the_record_and_the_log_of_a_published_run(client: Client, run: Run) -> None:
    assert file_of(client, run, RECORD) == b"the training_record"
    assert file_of(client, run, LOG) == b"the communication_log"


def test_saved_files_are_named_after_track_method_and_budget(client: Client, run: Run) -> None:
    run.submission.title = "Größe & DP/LoRA"
    run.submission.save()
    saved = client.get(reverse("submissions:evidence", args=[run.submission_id, run.pk, RECORD]), follow=True)
    name = f"{run.submission.track.slug}-groe-dplora-epsilon-4-{RECORD}.txt"
    assert saved["Content-Disposition"] == f'attachment; filename="{name}"'
    cited = client.get(reverse("submissions:bibtex", args=[run.submission_id]))
    assert cited["Content-Disposition"] == 'attachment; filename="track-groe-dplora.bib"'
    run.submission.title = "方法"
    run.submission.save()
    cited = client.get(reverse("submissions:bibtex", args=[run.submission_id]))
    assert f'"track-{str(run.submission_id)[:8]}.bib"' in cited["Content-Disposition"]


def test_everybody_may_read_the_index_of_counted_messages_but_no_message(client: Client) -> None:
    submission = make_submission(track=make_track(), state=SubmissionState.SUBMITTED)
    run = make_run(submission, state=RunState.SCORED, rounds_folded=3)
    for kind in (ArtifactKind.TRANSCRIPT, ArtifactKind.MESSAGES):
        make_artifact(run, kind, f"the {kind}".encode(), f"{kind}.bin")
    assert file_of(client, run, ArtifactKind.TRANSCRIPT) == b"the transcript"
    assert file_of(client, run, ArtifactKind.MESSAGES) is None
    row: Any = publish_all(submission.track).boards[0].rows[0]
    assert row.transcript_url.endswith(f"/{ArtifactKind.TRANSCRIPT}/")
    change_results(run, counting="declared", rounds_folded=0)
    row = publish_all(submission.track).boards[0].rows[0]
    assert row.transcript_url is None


def test_a_team_downloads_each_of_its_own_files_from_the_page_of_its_submission(
    client: Client, run: Run
) -> None:
    annex = run.artifacts.get(kind=ANNEX)
    address = reverse("submissions:own_file", args=[run.submission_id, annex.pk])
    assert client.get(address).status_code == 302
    client.force_login(owner_of(make_team()))
    assert client.get(address).status_code == 404
    client.force_login(owner_of(run.submission.team))
    assert f'href="{address}"' in client.get(run.submission.get_absolute_url()).text
    assert b"".join(client.get(address, follow=True)) == b"the training_annex"
    Upload.objects.filter(artifacts=annex).update(state=UploadState.EXPIRED)
    assert client.get(address).status_code == 404
    html = client.get(run.submission.get_absolute_url()).text
    assert address not in html
    assert "(no longer stored)" in html


def test_a_run_without_a_budget_is_cited_alike_on_both_pages(client: Client) -> None:
    run = make_run(
        make_submission(track=make_track(), state=SubmissionState.SUBMITTED), state=RunState.SCORED
    )
    evidence = client.get(reverse("submissions:run", args=[run.submission_id, run.pk])).text
    entries = [
        re.search(r"@\w+\{pfl-docvqa-.*?\n\}", page, re.DOTALL)
        for page in (evidence, client.get(run.submission.get_absolute_url()).text)
    ]
    assert entries[0] is not None
    assert entries[1] is not None
    assert entries[0][0] == entries[1][0]


def test_the_annex_and_whatever_else_is_no_such_page_even_for_its_team(client: Client, run: Run) -> None:
    client.force_login(owner_of(run.submission.team))
    for kind in (ANNEX, ArtifactKind.CHECKPOINT, "settings", "x"):
        assert file_of(client, run, kind) is None


@pytest.mark.parametrize("fields", [{"anonymous": True, "alias": "Owl"}, {"published_at": None}])
def test_nobody_gets_files_of_an_anonymous_team_or_an_unpublished_submission(
    client: Client, run: Run, fields: dict[str, object]
) -> None:
    type(run.submission).objects.filter(pk=run.submission_id).update(**fields)
    assert file_of(client, run, RECORD) is None


def test_a_run_that_was_not_scored_or_is_of_another_submission_has_no_public_files(
    client: Client, run: Run
) -> None:
    failed = make_run(run.submission, state=RunState.FAILED, budget=8)
    make_artifact(failed, LOG, b"the log", "log.csv")
    assert file_of(client, failed, LOG) is None
    other = make_submission(team=make_team(), track=run.submission.track, state=SubmissionState.SUBMITTED)
    address = reverse("submissions:evidence", args=[other.pk, run.pk, RECORD])
    assert client.get(address).status_code == 404


def test_a_board_has_the_addresses_of_named_teams_only(client: Client, run: Run) -> None:
    row: Any = publish_all(run.submission.track).boards[0].rows[0]
    assert row.record_url.endswith(reverse("submissions:evidence", args=[run.submission_id, run.pk, RECORD]))
    assert row.log_url.endswith(f"/{LOG}/")
    type(run.submission).objects.filter(pk=run.submission_id).update(anonymous=True, alias="Owl")
    row = publish_all(run.submission.track).boards[0].rows[0]
    assert (row.record_url, row.log_url) == (None, None)


def page_of(client: Client, run: Run) -> str:
    """The evidence of a run as text; empty where there is no such page."""
    response = client.get(reverse("submissions:run", args=[run.submission_id, run.pk]))
    return "" if response.status_code == 404 else " ".join(response.text.split())


def test_the_evidence_of_a_run_is_a_page_with_its_checks_traffic_signature_and_files(
    client: Client, run: Run
) -> None:
    change_results(run, checks=[{"id": "record.rounds", "status": "passed", "found": "30 rounds recorded"}])
    evaluation = Evaluation.objects.create(
        run=run, attempt=1, step=Step.SCORING, state=EvaluationState.PASSED, finished_at=timezone.now()
    )
    traffic = {"rounds": 30, "messages": 60, "bytes_down": 4_000_000, "bytes_up": 3_000_000}
    for step, result in ((Step.COMMUNICATION, traffic), (Step.ACCOUNTING, {"public_key": "0123abcd" * 8})):
        StepReport.objects.create(evaluation=evaluation, step=step, outcome=Outcome.PASSED, result=result)
    page = page_of(client, run)
    assert "<h1>Evidence at ε = 4</h1>" in page
    assert "30 rounds recorded" in page
    assert "60 in 30 rounds" in page
    assert ">4.00 MB</data> to the clients" in page
    assert "signed with the team's key <code>0123 abcd 0123 abcd</code>" in page
    for kind in (RECORD, LOG):
        assert f'href="{reverse("submissions:evidence", args=[run.submission_id, run.pk, kind])}"' in page
    assert f"runs/{run.pk}/{ANNEX}/" not in page


def test_the_evidence_says_how_many_rounds_were_recomputed_and_that_the_checkpoint_matches(
    client: Client,
) -> None:
    submission = make_submission(track=make_track(), state=SubmissionState.SUBMITTED)
    run = make_run(submission, state=RunState.SCORED, counting="counted", rounds_folded=6, log_rounds=6)
    change_results(run, anls=0.82, anls_low=0.8, anls_high=0.84, decimals=2)
    evaluation = Evaluation.objects.create(
        run=run, attempt=1, step=Step.SCORING, state=EvaluationState.PASSED, finished_at=timezone.now()
    )
    StepReport.objects.create(evaluation=evaluation, step=Step.COMMUNICATION, outcome=Outcome.PASSED)
    page = page_of(client, run)
    assert "6 of 6 rounds recomputed from the messages; the checkpoint matches" in page
    assert "The site's workers counted. Nobody can repeat the count from public files" in page
    assert "95% interval 0.80–0.84" in page


def test_the_terms_of_the_privacy_section_are_explained(client: Client, run: Run) -> None:
    finished = {"run": run, "attempt": 1, "state": EvaluationState.PASSED, "finished_at": timezone.now()}
    evaluation = Evaluation.objects.create(step=Step.ACCOUNTING, **finished)
    StepReport.objects.create(evaluation=evaluation, step=Step.ACCOUNTING, outcome=Outcome.PASSED, result={})
    judged = {"within_budget": True, "margin": 1.0}
    epsilons = [
        {"accountant": accountant, "sampling_rule": rule, "epsilon": 3.0, "decides": decides, **judged}
        for accountant, rule, decides in [
            ("pld", "two_stage", True),
            ("pld", "product", False),
            ("rdp", "two_stage", False),
        ]
    ]
    bounds = {"balanced_accuracy": 0.9, "true_positive_rates": [], "gaussian_mu": 1.5}
    change_results(run, epsilons=epsilons, membership=bounds)
    page = page_of(client, run)
    section = page[page.index('id="privacy"') : page.index('id="files"')]
    for words in ["two-stage", "product", "PLD", "RDP", "Joint ε"]:
        assert re.search(rf'<a class="term" href="/docs/glossary/#row-[^"]+">{words}</a>', section), words
    assert "At this δ and at any larger one, the run is at least as private as" in section
    for part in ["accountants", "two-amplification-rules", "what-ε-means-in-numbers"]:
        assert f'href="/docs/privacy/#{part}"' in section
    assert f'href="{run.submission.track.get_absolute_url()}"' in section
    assert "Both rules give the same ε for this run. PLD" in section
    rounds = Gaussian(effective_noise_multiplier=2, rounds=30)
    for event, because in (
        (rounds, ", because its clients aren't sampled"),
        (TwoStage(client_rate=0.2, within=Gaussian(effective_noise_multiplier=2), rounds=30), ""),
    ):
        result = {"events": EVENTS.dump_python([event], mode="json"), "delta": 1e-5}
        StepReport.objects.filter(evaluation=evaluation).update(result=result)
        assert f"Both rules give the same ε for this run{because}. PLD" in page_of(client, run)
    change_results(run, epsilons=[row | {"epsilon": 3.0 + number} for number, row in enumerate(epsilons)])
    assert "Both rules give" not in page_of(client, run)


def test_a_run_has_an_entry_of_its_own_with_its_interval(client: Client, run: Run) -> None:
    make_run(run.submission, state=RunState.SCORED, budget=8, epsilon=7.0)
    change_results(run, anls=0.8212, anls_low=0.801, anls_high=0.842, decimals=2)
    evaluation = Evaluation.objects.create(
        run=run, attempt=1, step=Step.SCORING, state=EvaluationState.PASSED, finished_at=timezone.now()
    )
    StepReport.objects.create(evaluation=evaluation, step=Step.SCORING, outcome=Outcome.PASSED)
    entry = page_of(client, run).partition("Cite this run</h2>")[2].partition("</pre>")[0]
    assert f"pfl-docvqa-{str(run.submission_id)[:8]}-epsilon-4," in entry
    assert reverse("submissions:run", args=[run.submission_id, run.pk]) in entry
    assert "At epsilon = 4: ANLS 0.82 (95\\% interval 0.80 to 0.85), recomputed epsilon 3.0000" in entry
    assert "epsilon = 8" not in entry


def test_a_run_that_no_board_lists_is_not_cited(client: Client, run: Run) -> None:
    Submission.objects.filter(pk=run.submission_id).update(published_at=None)
    client.force_login(run.submission.created_by)
    page = page_of(client, run)
    assert "<h1>Evidence" in page
    assert "Cite this run" not in page


def test_checks_are_in_groups_and_their_texts_have_lines_of_their_own(client: Client, run: Run) -> None:
    ids = [
        "record.rounds",
        "record.noise_size",
        "log.rounds",
        "record.linkage",
        "team.joint_epsilon",
        "a.new_one",
    ]
    change_results(run, checks=[{"id": one, "status": "passed"} for one in ids])
    evaluation = Evaluation.objects.create(
        run=run, attempt=1, step=Step.SCORING, state=EvaluationState.PASSED, finished_at=timezone.now()
    )
    StepReport.objects.create(evaluation=evaluation, step=Step.SCORING, outcome=Outcome.PASSED)
    address = reverse("submissions:run", args=[run.submission_id, run.pk])
    for query, lines in ({}, 0), ({"explain": "1"}, len(ids)):
        page = client.get(address, query).text
        rows = re.findall(r'scope="rowgroup">([^<]+)<|<code class="muted small">([^<]+)<', page)
        assert [subject or check for subject, check in rows] == [
            "Noise",
            "record.noise_size",
            "From the noised sums to the model",
            "record.linkage",
            "Training record",
            "record.rounds",
            "Other runs of the team",
            "team.joint_epsilon",
            "Communication log",
            "log.rounds",
            "Other checks",
            "a.new_one",
        ]
        assert page.count('<td class="checks-text" colspan="3">') == lines


def test_the_guide_lists_the_sections_of_the_page() -> None:
    template = (Path(run_page.__file__).parent / "templates" / "pages" / "run.html").read_text()
    contents = re.findall(r'<li><a href="#\w+">(?:{% if signed_by %})?([\w ]+)', template)
    guide = library.read("leaderboards").partition("## Reading a page of evidence")[2].partition("\n## ")[0]
    assert re.findall(r"^- \*\*([\w ]+)\*\*", guide, re.M) == contents


def test_a_check_states_what_was_expected_where_it_has_such_a_value(client: Client, run: Run) -> None:
    stated = {"id": "record.rounds", "status": "flagged", "found": "73728000 bytes", "expected": "δ = 1e-05"}
    change_results(run, checks=[stated, {"id": "record.data", "status": "passed", "found": "equal"}])
    evaluation = Evaluation.objects.create(
        run=run, attempt=1, step=Step.SCORING, state=EvaluationState.PASSED, finished_at=timezone.now()
    )
    StepReport.objects.create(evaluation=evaluation, step=Step.ACCOUNTING, outcome=Outcome.PASSED)
    page = page_of(client, run)
    assert page.count("Expected: δ = 10⁻⁵") == page.count("Expected") == 1
    assert "<details open>" not in page
    explained = client.get(f"{reverse('submissions:run', args=[run.submission_id, run.pk])}?explain=1").text
    assert explained.count('<td class="checks-text" colspan="3">') == 2
    assert "Signature" not in page
    assert "73,728,000 bytes" in page


def test_single_checks_are_unfolded_where_one_found_something(client: Client, run: Run) -> None:
    address = reverse("submissions:run", args=[run.submission_id, run.pk])
    for status, is_open in (("passed", ""), ("no_power", ""), ("flagged", " open"), ("failed", " open")):
        change_results(run, checks=[{"id": "record.rounds", "status": status}])
        assert f'<details class="all-checks"{is_open}>' in page_of(client, run), status
        assert '<details class="all-checks" open>' in client.get(f"{address}?explain=1").text


def test_the_evidence_for_an_anonymous_team_is_its_own_and_the_organizers_alone(
    client: Client, run: Run
) -> None:
    type(run.submission).objects.filter(pk=run.submission_id).update(anonymous=True, alias="Owl")
    assert page_of(client, run) == ""
    assert f"runs/{run.pk}/" not in client.get(run.submission.get_absolute_url()).text
    client.force_login(owner_of(run.submission.team))
    assert "Evidence at" in page_of(client, run)


def test_a_run_without_a_finished_step_has_no_evidence(client: Client, run: Run) -> None:
    waiting = make_run(run.submission, state=RunState.QUEUED, budget=8)
    client.force_login(owner_of(run.submission.team))
    assert page_of(client, waiting) == ""
    other = make_submission(team=make_team(), track=run.submission.track, state=SubmissionState.SUBMITTED)
    assert client.get(reverse("submissions:run", args=[other.pk, run.pk])).status_code == 404
