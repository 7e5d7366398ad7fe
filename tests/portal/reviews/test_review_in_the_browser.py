"""The review page in a real browser: the evidence never covers the form."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from evaluator.contracts import ArtifactKind
from tests.portal.factories import change_results, make_artifact
from tests.portal.reviews.test_decisions import make_reviewer, scored_submission
from tests.services.chromium import Chromium

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]

HASH = "0123456789abcdef" * 4


@pytest.fixture(scope="module")
def browser():
    with Chromium() as browser:
        yield browser


@pytest.fixture
def page(browser, live_server, client, settings, tmp_path):
    settings.STORE_FOLDER = tmp_path / "store"
    submission = scored_submission()
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF, b"# Proof", "proof.md")
    checks = [{"id": "C16", "status": "failed", "expected": HASH, "found": HASH, "where": f"round 3, {HASH}"}]
    change_results(submission.runs.get(), checks=checks)
    client.force_login(make_reviewer())
    context = browser.new_context()
    session = client.cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
    page = context.new_page()
    page.address = live_server.url + reverse("reviews:desk", args=[submission.pk])
    yield page
    context.close()


def test_every_question_can_be_answered_beside_the_opened_checks(page):
    page.goto(page.address)
    page.get_by_text("Checks of the run").click()
    for width in (1280, 1600, 390):
        page.set_viewport_size({"width": width, "height": 900})
        answers = page.get_by_role("radio", name="yes")
        answers.first.click(timeout=10_000)
        expect(answers.first).to_be_checked()
        answers.last.click(timeout=10_000)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
