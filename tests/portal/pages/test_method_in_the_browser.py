"""The page of a method in a browser without JavaScript: its parts are linked to, and a link unfolds what is folded."""

import pytest
from django.contrib.staticfiles import finders
from django.test import Client
from playwright.sync_api import Route, expect

from portal.challenge.rankings import BEST_ANLS_AT_BUDGET
from portal.submissions.models import RunState, SubmissionState
from tests.portal.factories import make_run, make_submission, make_track
from tests.services.chromium import Chromium

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("browser")]

SITE = "http://testserver"


def answer_static_files(route: Route) -> None:
    path = route.request.url.removeprefix(f"{SITE}/static/")
    if file := finders.find(path):
        route.fulfill(path=file)
    else:
        route.abort()


def test_a_link_to_the_evidence_of_a_run_unfolds_it(client: Client) -> None:
    track = make_track(BEST_ANLS_AT_BUDGET, slug="private", budgets=[1, 4])
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED)
    one, four = (
        make_run(
            submission, state=RunState.SCORED, budget=budget, epsilon=0.9 * budget, anls=0.5, accuracy=0.4
        )
        for budget in (1.0, 4.0)
    )
    body = client.get(submission.get_absolute_url()).getvalue()
    with Chromium() as browser:
        page = browser.new_page(java_script_enabled=False, viewport={"width": 1280, "height": 600})
        page.route("**/*", answer_static_files)
        page.route(
            f"{SITE}/method/*",
            lambda route: route.fulfill(content_type="text/html; charset=utf-8", body=body),
        )
        page.goto(f"{SITE}/method/")
        first, second = page.locator(f"[id='run-{one.pk}']"), page.locator(f"[id='run-{four.pk}']")
        expect(first).to_be_hidden()
        page.get_by_label("On this page").get_by_role("link", name="Evidence at ε = 4").click()
        expect(second).to_be_in_viewport()
        expect(page.get_by_role("heading", name="Evidence at ε = 4")).to_be_in_viewport()
        expect(first).to_be_hidden()
        # From elsewhere too, as boards link to flagged checks.
        page.goto("about:blank")
        page.goto(f"{SITE}/method/#run-{one.pk}")
        expect(first).to_be_in_viewport()
        expect(second).to_be_hidden()
