"""The lists of the admin site in a window of 1280 pixels."""

import pytest
from django.test import Client
from playwright.sync_api import Browser

from docvqa_site.audit.models import record
from docvqa_site.evaluation.models import Evaluation
from evaluator.messages.jobs import Step
from tests.docvqa_site.factories import make_organizer, make_reviewer, make_team, scored_submission
from tests.docvqa_site.reviews.test_decisions import accept
from tests.docvqa_site.ui.test_accessibility import shown
from tests.docvqa_site.ui.world import LONG_TITLE

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("browser")]

# The width of each column, by the name of its field.
WIDTHS = """() => Object.fromEntries([...document.querySelectorAll("#result_list tbody tr > [class*=field-]")].map(
  (cell) => [cell.className.match(/field-(\\w+)/)[1], cell.getBoundingClientRect().width]))"""

# By how much the list is wider than the room that it has.
OVERHANG = """() => { const list = document.getElementById("result_list").parentElement;
  return list.scrollWidth - list.clientWidth; }"""


@pytest.mark.parametrize(
    ("address", "columns"),
    [
        ("submissions/submission", {"title": (170, 400), "of_team": (110, 200), "submitted_at": (170, 200)}),
        ("evaluation/evaluation", {"run": (170, 480), "created_at": (170, 260)}),
        ("audit/auditentry", {"at": (170, 280), "sentence": (200, 500), "changes": (170, 500)}),
        ("reviews/proof", {"title": (170, 400), "team": (110, 300), "decided": (100, 200)}),
        ("reviews/proofreview", {"submission": (170, 560)}),
    ],
)
def test_columns_are_wide_enough_for_words_and_none_takes_the_others_room(
    browser: Browser, client: Client, address: str, columns: dict[str, tuple[int, int]]
) -> None:
    team = make_team(name="The Laboratory for Federated Receipts and Invoices")
    submission = scored_submission(team=team, title=LONG_TITLE)
    Evaluation.objects.create(run=submission.runs.get(), attempt=1, step=Step.SCORING)
    permissions = ("view_submission", "view_evaluation", "view_auditentry", "view_proofreview")
    organizer = make_organizer("organize", *permissions)
    accept(submission, make_reviewer())
    record(organizer, "submission.withdrawn", submission, reason="Trained on the test set. " * 4)
    client.force_login(organizer)
    with shown(browser, client.get(f"/admin/{address}/"), 1280, 900) as page:
        widths = page.evaluate(WIDTHS)
        overhang = page.evaluate(OVERHANG)
        # The filters are folded, and the desk's menu takes the place of the administration's.
        assert page.get_by_text("Filters", exact=True).is_visible()
        assert not page.locator("#changelist-filter").is_visible()
        for name in ("Organizers' desk", "Breadcrumbs"):
            place = page.get_by_role("navigation", name=name)
            assert place.get_by_role("link", name="Organizers' desk").get_attribute("href") == "/organize/"
    assert overhang <= 0
    for name, (least, most) in columns.items():
        assert least <= widths[name] <= most, (name, widths)
