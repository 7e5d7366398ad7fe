"""Examinations of runs: the trust level follows from them, and pages, API and boards say who made them and when."""

import csv
import io
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from docvqa_site.audit.models import AuditEntry
from docvqa_site.boards.published import as_csv
from docvqa_site.evaluation import clock
from docvqa_site.evaluation.examining.files import fetched
from docvqa_site.evaluation.examining.requests import conclude
from docvqa_site.evaluation.examining.trust import Trust, earned
from docvqa_site.evaluation.intake.receiving import receive_report
from docvqa_site.evaluation.models import Evaluation, Examination, ExaminationState
from docvqa_site.submissions.models import RunState
from docvqa_site.submissions.services import start_upload
from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.messages.examinations import (
    CodeIdentity,
    Comparison,
    ConformanceFindings,
    ReplayFindings,
    Report,
    RerunFindings,
    Scores,
)
from evaluator.messages.jobs import ArtifactKind, Step, TrustLevel
from tests.docvqa_site.evaluation.messages import make_report
from tests.docvqa_site.factories import (
    make_artifact,
    make_organizer,
    make_run,
    make_submission,
    make_user,
)
from tests.docvqa_site.submissions.drafts import make_complete_draft, make_private_track

pytestmark = pytest.mark.django_db

SCORED_AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
IDENTITY = CodeIdentity(
    kit_version="1.2",
    code_sha256="c" * 64,
    settings_sha256="5" * 64,
    method_sha256="e" * 64,
    is_recorded=True,
)
SCORES = Scores(anls=0.5, accuracy=0.4, bytes_total=100)


def reported(findings, problems=()) -> Report:
    return Report(seconds=2.0, identity=IDENTITY, problems=list(problems), findings=findings)


def conformance(*verdicts: str, problems: list[Problem] | None = None) -> Report:
    tests = [
        {"id": f"test-{number}", "measures": "something", "verdict": verdict}
        for number, verdict in enumerate(verdicts)
    ]
    findings = ConformanceFindings.model_validate({"unit": "provider", "seed": 1, "tests": tests})
    return reported(findings, problems or [])


def rerun(difference: float, **findings) -> Report:
    comparison = Comparison(
        name="anls", submitted=0.5, repeated=0.5 - difference, allowed=0.1, basis="three repeats"
    )
    return reported(
        RerunFindings(submitted=SCORES, repeats=[SCORES] * 3, comparisons=[comparison], **findings)
    )


PASSED, FAILED = conformance("passed", "no_power"), conformance("passed", "failed")


@pytest.fixture
def run():
    return make_run(
        make_submission(track=make_private_track(), state="submitted"),
        state=RunState.SCORED,
        budget=4.0,
        epsilon=3.0,
        scored_at=SCORED_AT,
    )


def examine(run, report=PASSED, level=TrustLevel.CONFORMING, by=None) -> Examination:
    examination = Examination.objects.create(
        run=run, level=level, by=by, state=ExaminationState.RUNNING, heartbeat_at=clock.now()
    )
    conclude(examination, report)
    return examination


def page(run, user=None):
    return shown(f"{run.submission.get_absolute_url()}runs/{run.pk}/", user)


def shown(address, user=None):
    client = Client()
    if user:
        client.force_login(user)
    return client.get(address).content.decode()


class TestReports:
    def test_a_conformance_report_passes_with_tests_of_which_none_failed(self):
        assert PASSED.passed
        assert not FAILED.passed
        assert not conformance().passed
        assert not conformance("passed", problems=[Problem.of(ErrorCode.CONFORMANCE_CRASHED)]).passed

    def test_tests_without_power_are_named(self):
        assert "Without power (no evidence): test-1" in PASSED.in_words
        assert FAILED.in_words == "The method doesn't behave as claimed: test-1."
        stopped = conformance(problems=[Problem.of(ErrorCode.CONFORMANCE_TIMEOUT)])
        assert stopped.in_words == "The method could not be examined: E_CONFORMANCE_TIMEOUT."

    def test_a_rerun_passes_if_every_difference_is_explained_on_the_recorded_terms(self):
        assert rerun(0.09).passed
        assert not rerun(0.11).passed
        assert not rerun(-0.11).passed
        assert not rerun(0.0, other_terms=["rounds"]).passed
        assert not reported(RerunFindings(submitted=SCORES)).passed

    def test_a_number_that_is_none_is_rejected(self):
        with pytest.raises(ValueError, match="finite"):
            Scores(anls=float("nan"), accuracy=0.1, bytes_total=1)


class TestEarned:
    def examination(self, run, level, passed, days, by=None):
        return Examination(
            run=run,
            level=level,
            state="passed" if passed else "failed",
            report=PASSED.model_dump(mode="json"),
            finished_at=SCORED_AT + timedelta(days=days),
            pk=days,
            by=by,
        )

    def test_one_that_has_not_ended_or_is_broken_says_nothing(self, run):
        passed = self.examination(run, 3, True, 1)
        others = [Examination(run=run, level=3, state=state) for state in ("queued", "broken", "canceled")]
        assert earned(SCORED_AT, [passed, *others]).level is TrustLevel.RERUN

    def test_without_examinations_the_evaluator_has_recomputed_the_numbers(self, run):
        assert earned(SCORED_AT, []) == Trust(TrustLevel.RECOMPUTED, "the evaluator", SCORED_AT)

    def test_the_highest_level_that_passed_counts(self, run):
        ada = make_user(name="Ada")
        rows = [self.examination(run, 3, True, 1, ada), self.examination(run, 1, True, 2)]
        assert earned(SCORED_AT, rows) == Trust(TrustLevel.RERUN, "Ada", SCORED_AT + timedelta(days=1))

    def test_a_later_examination_of_the_same_level_replaces_an_earlier_one(self, run):
        rows = [self.examination(run, 3, True, 1), self.examination(run, 3, False, 2)]
        assert earned(SCORED_AT, rows).level is TrustLevel.RECOMPUTED
        assert earned(SCORED_AT, [*rows, self.examination(run, 3, True, 3)]).level is TrustLevel.RERUN


class TestConcluding:
    def test_a_passed_one_gives_the_run_its_level_and_leaves_an_audit_entry(self, run):
        organizer = make_organizer(name="Ada Lovelace")
        examination = examine(run, by=organizer)
        run.refresh_from_db()
        assert (run.results.trust_level, run.results.trust_by) == (TrustLevel.CONFORMING, "Ada Lovelace")
        assert run.results.trust_at == examination.finished_at
        entry = AuditEntry.objects.get(action="examination.passed")
        assert entry.object_id == str(examination.pk)
        assert entry.details == {"before": "running", "level": 1}

    def test_a_failed_one_is_stored_and_gives_none(self, run):
        examine(run, FAILED)
        run.refresh_from_db()
        assert run.results.trust_level is TrustLevel.RECOMPUTED
        assert run.examinations.get().found == FAILED

    def test_it_survives_another_evaluation_of_the_same_files(self, run):
        examine(run)
        evaluation = Evaluation.objects.create(run=run, attempt=1, state="running", step="scoring")
        run.state, run.pending = RunState.RUNNING, run.results
        run.save()
        receive_report(make_report(evaluation, Step.SCORING))
        run.refresh_from_db()
        assert run.results.trust_level is TrustLevel.CONFORMING

    @pytest.mark.parametrize("state", [RunState.QUEUED, RunState.REJECTED])
    def test_a_run_that_is_not_scored_is_not_examined(self, run, state):
        run.state = state
        run.save()
        with pytest.raises(ProblemError, match="E_SUBMISSION_STATE"):
            examine(run)

    def test_rows_are_never_changed_and_are_of_known_levels(self, run):
        examination = examine(run)
        with pytest.raises(TypeError):
            examination.save()
        with pytest.raises(TypeError):
            examination.delete()
        for wrong in ({"level": 0}, {"level": 1, "state": "passed"}, {"level": 1, "report": {}}):
            with pytest.raises(IntegrityError), transaction.atomic():
                Examination.objects.create(run=run, **wrong)

    def test_text_that_the_database_cannot_store_is_replaced(self, run):
        problem = Problem.of(ErrorCode.CONFORMANCE_FAILED)
        examine(run, conformance(problems=[problem.model_copy(update={"found": "printed \0" + "x" * 10**6})]))
        found = run.examinations.get().found.problems[0].found
        assert found.startswith("printed")
        assert "\0" not in found
        assert len(found) <= 500


class TestShowing:
    def test_page_api_and_boards_show_the_level_with_who_and_when(self, run):
        organizer = make_organizer(name="Ada Lovelace")
        at = examine(run, by=organizer).ended_at
        day = f"{at:%Y-%m-%d}"
        html = page(run)
        assert "L1 conforming" in html
        assert "Ada Lovelace" in html
        assert "no power" not in html
        assert "Without power (no evidence): test-1" in html
        board = (
            Client().get(f"/leaderboard/{run.submission.track.slug}/?epsilon={run.budget:g}").content.decode()
        )
        assert f"by Ada Lovelace, {at:%b} {at.day}, {at:%Y}" in board
        (row,) = csv.DictReader(io.StringIO(as_csv(run.submission.track)))
        assert (row["trust_level"], row["trust_by"], row["trust_at"][:10]) == ("1", "Ada Lovelace", day)
        published = Client().get(f"/api/v1/leaderboards/{run.submission.track.slug}").json()
        results = published["boards"][1]["rows"][0]["results"]
        assert (results["trust_level"], results["trust_by"]) == (1, "Ada Lovelace")

    def test_a_replay_is_shown_with_how_many_rounds_it_covered(self, run):
        findings = ReplayFindings(challenge="5" * 64, rounds=[3, 40, 71, 100], of=100, exact=True)
        examine(run, reported(findings), TrustLevel.REPLAYED)
        track = run.submission.track
        assert "L2, 4 of 100 rounds" in page(run)
        board = Client().get(f"/leaderboard/{track.slug}/?epsilon={run.budget:g}").content.decode()
        assert "L2, 4 of 100 rounds" in board
        (row,) = csv.DictReader(io.StringIO(as_csv(track)))
        assert (row["trust_level"], row["trust_rounds"]) == ("2", "4 of 100 rounds")
        published = Client().get(f"/api/v1/leaderboards/{track.slug}").json()
        assert published["boards"][1]["rows"][0]["results"]["trust_rounds"] == "4 of 100 rounds"

    def test_a_failed_one_is_shown_to_insiders_only(self, run):
        problem = Problem.of(ErrorCode.CONFORMANCE_FAILED, found="<b>their text</b>")
        examine(run, conformance("failed", problems=[problem]))
        assert "not passed" not in page(run)
        organizer, member = make_organizer("organize", "view_submission"), run.submission.created_by
        for user in (organizer, member):
            html = page(run, user)
            assert "not passed" in html
            assert problem.code in html
            assert "their text" not in html
        client = Client()
        client.force_login(organizer)
        desk = client.get(f"/organize/runs/{run.pk}/").content.decode()
        assert "&lt;b&gt;their text" in desk
        client.force_login(member)
        status = client.get(f"/api/v1/submissions/{run.submission_id}").json()
        (shown,) = status["runs"][0]["examinations"][0]["report"]["problems"]
        assert (shown["code"], shown["found"]) == (problem.code, "")

    def test_the_administration_lists_them_and_edits_none(self, run):
        examination = examine(run)
        client = Client()
        client.force_login(make_organizer("view_examination", "view_submission"))
        address = f"/admin/evaluation/examination/{examination.pk}/change/"
        assert client.get("/admin/evaluation/examination/").status_code == 200
        assert client.get(address).status_code == 200
        assert client.post(address, {"passed": "on"}).status_code == 403


class TestAttaching:
    def test_a_draft_needs_neither_file_and_takes_both(self):
        draft = make_complete_draft()
        client = Client()
        client.force_login(draft.created_by)
        html = client.get(draft.get_absolute_url()).content.decode()
        assert 'data-kind="settings"' in html
        assert 'data-kind="method_file"' in html
        assert "The draft is complete" in html
        run = draft.runs.get()
        for kind, filename, size_bytes, code in (
            ("method_file", "mine.py", 10, None),
            ("method_file", "mine.zip", 10, "E_ARTIFACT_KIND"),
            ("settings", "settings.yaml", 10**6 + 1, "E_ARTIFACT_SIZE"),
        ):
            with pytest.raises(ProblemError, match=code) if code else nullcontext():
                start_upload(
                    draft,
                    run,
                    kind,
                    draft.created_by,
                    filename=filename,
                    size_bytes=size_bytes,
                    sha256="a" * 64,
                )

    def test_they_stay_with_the_team_and_the_organizers(self, run):
        make_artifact(run, ArtifactKind.METHOD_FILE, b"Settings = 1", "our_secret_method.py")
        address = run.submission.get_absolute_url()
        for stranger in (None, make_user()):
            assert "our_secret_method.py" not in page(run, stranger)
            assert "our_secret_method.py" not in shown(address, stranger)
        assert "our_secret_method.py" in shown(address, run.submission.created_by)
        assert "our_secret_method.py" in shown(address, make_organizer())


class TestFiles:
    def test_they_are_copied_under_their_own_names_and_removed(self, run):
        make_artifact(run, ArtifactKind.SETTINGS, b"method: mine.py", "set.yaml")
        make_artifact(run, ArtifactKind.METHOD_FILE, b"Settings = 1", "mine.py")
        with fetched(run, required=[ArtifactKind.SETTINGS], optional=[ArtifactKind.METHOD_FILE]) as files:
            assert files.paths[ArtifactKind.SETTINGS].read_bytes() == b"method: mine.py"
            folder = files.paths[ArtifactKind.SETTINGS].parent
            assert (folder / "mine.py").read_bytes() == b"Settings = 1"
        assert not folder.exists()

    def test_one_that_is_missing_or_altered_is_a_problem(self, run):
        with (
            pytest.raises(ProblemError, match="E_ARTIFACT_MISSING"),
            fetched(run, required=[ArtifactKind.SETTINGS]),
        ):
            pass
        artifact = make_artifact(run, ArtifactKind.SETTINGS)
        artifact.upload.sha256 = "0" * 64
        artifact.upload.save()
        with (
            pytest.raises(ProblemError, match="E_ARTIFACT_HASH"),
            fetched(run, required=[ArtifactKind.SETTINGS]),
        ):
            pass
