"""The organizers' button that requests an examination, and what a run's page shows of it."""

import re
import uuid
from datetime import timedelta

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.evaluation import clock
from docvqa_site.evaluation.examining import requests
from docvqa_site.evaluation.models import Examination, ExaminationState
from docvqa_site.liveness.models import SignOfLife, show_examinations
from docvqa_site.submissions.models import Run, RunState, SubmissionState
from evaluator.errors import ErrorCode, Problem
from evaluator.messages.examinations import CodeIdentity, ConformanceFindings, Report
from evaluator.messages.jobs import ArtifactKind, TrustLevel
from tests.docvqa_site.factories import (
    make_artifact,
    make_organizer,
    make_run,
    make_submission,
    sign_in_organizer,
)

pytestmark = pytest.mark.django_db

IDENTITY = CodeIdentity(kit_version="1.2", code_sha256="c" * 64, settings_sha256="5" * 64)
TEST = {"id": "noise-scale", "measures": "something", "verdict": "passed"}


@pytest.fixture
def organizer(client: Client) -> User:
    return sign_in_organizer(client, "organize", "view_submission", "add_examination")


@pytest.fixture
def run() -> Run:
    run = make_run(make_submission(state=SubmissionState.SUBMITTED), state=RunState.SCORED)
    make_artifact(run, ArtifactKind.SETTINGS)
    return run


def press(client: Client, run: Run, level: object = 1) -> str:
    """Press the button; returns the page that follows."""
    return client.post(f"/organize/runs/{run.pk}/examine/", {"level": level}, follow=True).text


def test_a_request_says_why_and_that_a_run_has_one_examination_at_a_time(
    client: Client, organizer: User, run: Run
) -> None:
    assert "has one examination at a time" not in client.get(f"/organize/runs/{run.pk}/").text
    data = {"level": 1, "reason": "Rank 1 before the deadline."}
    page = client.post(f"/organize/runs/{run.pk}/examine/", data, follow=True).text
    assert "has one examination at a time" in page
    assert re.search(r"examination: queued by [^<]+: Rank 1 before the deadline.</li>", page)


def part(client: Client, run: Run) -> str:
    """The part of the page that updates itself."""
    return client.get(f"/organize/runs/{run.pk}/examinations/").text


def reported(*problems: Problem) -> Report:
    findings = ConformanceFindings.model_validate({"unit": "provider", "seed": 1, "tests": [TEST]})
    return Report(seconds=1.0, identity=IDENTITY, problems=list(problems), findings=findings)


def test_the_button_queues_an_examination_of_the_chosen_level(
    client: Client, organizer: User, run: Run
) -> None:
    assert "Request an examination" in client.get(f"/organize/runs/{run.pk}/").text
    html = press(client, run)
    assert "The examination is requested, but no machine for examinations is running." in html
    assert "Waiting for a machine." in html
    assert "Request an examination" not in html
    assert "examination: queued" in html
    examination = run.examinations.get()
    assert (examination.level, examination.state, examination.by) == (1, "queued", organizer)


def test_a_second_request_is_rejected_with_its_code(client: Client, organizer: User, run: Run) -> None:
    press(client, run)
    assert ErrorCode.EXAMINATION_ACTIVE in press(client, run)
    assert run.examinations.count() == 1


def test_a_request_for_a_level_whose_files_are_missing_is_rejected(
    client: Client, organizer: User, run: Run
) -> None:
    html = press(client, run, level=2)
    assert ErrorCode.ARTIFACT_MISSING in html
    assert "training record" in html
    assert not run.examinations.exists()


@pytest.mark.parametrize("level", ["", "0", "4", "x"])
def test_a_level_that_does_not_exist_is_rejected(
    client: Client, organizer: User, run: Run, level: str
) -> None:
    assert "Choose a level" in press(client, run, level)
    assert not run.examinations.exists()


def test_progress_and_findings_appear_on_the_page(client: Client, organizer: User, run: Run) -> None:
    press(client, run)
    assert 'hx-trigger="every 2s"' in part(client, run)
    examination = requests.take()
    assert examination is not None
    requests.beat(examination, "Training 1 of 5 …")
    assert "Training 1 of 5 …" in part(client, run)
    requests.conclude(examination, reported())
    html = part(client, run)
    assert "The method behaved as claimed for one provider in 1 tests." in html
    assert "hx-trigger" not in html
    assert "L1 conforming" in Client().get(run.submission.get_absolute_url()).text


def test_why_nothing_was_found_out_is_for_the_organizers_only(
    client: Client, organizer: User, run: Run
) -> None:
    press(client, run)
    examination = requests.take()
    assert examination is not None
    requests.break_off(examination, "The judge ended with status 1. <i>its output</i>")
    assert "&lt;i&gt;its output" in part(client, run)
    for user in (None, run.submission.created_by):
        other = Client()
        if user:
            other.force_login(user)
        html = other.get(run.submission.get_absolute_url()).text
        assert "its output" not in html
        assert not re.search(r"\bL1\b", html)


def test_a_request_that_no_machine_takes_says_so(client: Client, organizer: User, run: Run) -> None:
    show_examinations()
    assert "A machine for examinations is running." in part(client, run)
    assert "The examination is requested. A machine for examinations is running." in press(client, run)
    assert "No machine is running examinations" not in part(client, run)
    SignOfLife.objects.update(at=timezone.now() - timedelta(minutes=5))
    assert "No machine is running examinations" in part(client, run)
    show_examinations()
    long_ago = clock.now() - timedelta(seconds=settings.EVALUATION_UNATTENDED_SECONDS + 1)
    run.examinations.update(requested_at=long_ago)
    assert "No machine is running examinations" in part(client, run)
    assert "No machine is running examinations" in client.get("/organize/").text


def test_a_level_whose_files_are_missing_cannot_be_chosen(client: Client, organizer: User, run: Run) -> None:
    choices = re.findall(r'value="(\d)" required( disabled)?', part(client, run))
    assert choices == [("1", ""), ("2", " disabled"), ("3", "")]
    reason = "not possible: the team attached no training record, no training annex, no round opening"
    assert reason in part(client, run)


def test_one_that_waits_is_canceled(client: Client, organizer: User, run: Run) -> None:
    press(client, run)
    address = f"/organize/runs/{run.pk}/examinations/{run.examinations.get().pk}/cancel/"
    assert client.get(address).status_code == 405
    assert "The examination was canceled." in client.post(address, follow=True).text
    assert run.examinations.get().state == ExaminationState.CANCELED
    assert "The examination has already ended." in client.post(address, follow=True).text


def test_an_examination_of_another_run_is_not_found(client: Client, organizer: User, run: Run) -> None:
    other = Examination.objects.create(
        run=make_run(make_submission(state=SubmissionState.SUBMITTED), state=RunState.SCORED),
        level=TrustLevel.CONFORMING,
    )
    assert client.post(f"/organize/runs/{run.pk}/examinations/{other.pk}/cancel/").status_code == 404
    assert client.get(f"/organize/runs/{uuid.uuid4()}/examinations/").status_code == 404


def test_without_the_permission_examinations_are_shown_and_none_is_requested(
    client: Client, organizer: User, run: Run
) -> None:
    press(client, run)
    client.force_login(make_organizer("organize", "view_submission"))
    html = client.get(f"/organize/runs/{run.pk}/").text
    assert "Waiting for a machine." in html
    assert "Cancel</button>" not in html
    assert client.post(f"/organize/runs/{run.pk}/examine/", {"level": 1}).status_code == 403
    examination = run.examinations.get()
    assert client.post(f"/organize/runs/{run.pk}/examinations/{examination.pk}/cancel/").status_code == 403
    client.force_login(make_organizer("organize", "add_examination"))
    assert client.get(f"/organize/runs/{run.pk}/examinations/").status_code == 403
