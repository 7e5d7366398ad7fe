"""The page of a method in a browser without JavaScript, at the width of a phone."""

import re

import pytest
from django.contrib.staticfiles import finders
from django.test import Client
from playwright.sync_api import Browser, Route, expect

from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.submissions.models import RunState, SubmissionState
from tests.docvqa_site.factories import make_run, make_submission, make_track

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("browser")]

SITE = "http://testserver"


def answer_static_files(route: Route) -> None:
    path = route.request.url.removeprefix(f"{SITE}/static/")
    if file := finders.find(path):
        route.fulfill(path=file)
    else:
        route.abort()


def test_a_method_leads_to_the_evidence_of_a_run_and_so_do_links_to_where_it_was(
    client: Client, browser: Browser
) -> None:
    track = make_track(BEST_ANLS_AT_BUDGET, slug="private", budgets=[1, 4, 8])
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED)
    one, four, _ = (
        make_run(
            submission,
            state=RunState.SCORED,
            budget=budget,
            epsilon=budget,
            anls=0.5,
            anls_low=0.4,
            anls_high=0.6,
            question_types=[{"name": "total", "anls": 0.5, "anls_low": 0.4, "anls_high": 0.6}],
            checks=[{"id": "log.directions", "status": "passed"}],
        )
        for budget in (1.0, 4.0, 8.0)
    )

    method = submission.get_absolute_url()
    # Rendered here: inside a route the test's transaction can't be seen.
    pages = {
        path: client.get(path).text for path in (method, *(f"{method}runs/{run.pk}/" for run in (one, four)))
    }

    def answer(route: Route) -> None:
        path = route.request.url.removeprefix(SITE).partition("#")[0]
        route.fulfill(content_type="text/html; charset=utf-8", body=pages[path])

    page = browser.new_page(java_script_enabled=False, viewport={"width": 390, "height": 600})
    page.route("**/*", answer)
    page.route(f"{SITE}/static/**", answer_static_files)
    # As it was linked to before the evidence had a page of its own.
    page.goto(f"{SITE}{method}#run-{four.pk}")
    # A screen reader reads a score and its interval as two numbers.
    row = page.get_by_role(
        "row", name=re.compile(r"^ε = 4 ANLS: 0\.50* 0\.40*–0\.60* .*Evidence at ε = 4 ?: ?1 passed")
    )
    expect(row).to_be_in_viewport()
    types = page.get_by_role("region", name="ANLS by question type, with 95% intervals")
    assert types.evaluate("(wrap) => wrap.scrollWidth <= wrap.clientWidth")
    row.get_by_role("link", name="Evidence at ε = 4").click()
    expect(page.get_by_role("heading", level=1, name="Evidence at ε = 4")).to_be_in_viewport()
    page.get_by_label("Runs of this method").get_by_role("link", name="ε = 1").click()
    expect(page).to_have_url(f"{SITE}{method}runs/{one.pk}/")
