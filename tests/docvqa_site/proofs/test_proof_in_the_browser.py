"""A PDF proof in a real browser, in the frame that the review page has it in: its images come without a cookie."""

import pytest
from django.urls import reverse
from playwright.sync_api import Browser, expect

from docvqa_site.proofs.drawing import draw_next
from docvqa_site.proofs.pages import draw_later
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import make_artifact, make_reviewer, scored_submission
from tests.docvqa_site.proofs import pdfs

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]

LOADED = "image => image.complete && image.naturalWidth"


def test_pages_are_shown_at_every_width_and_in_a_frame_without_rights(
    live_server, client, settings, tmp_path, browser: Browser
):
    settings.STORE_FOLDER = tmp_path / "store"
    submission = scored_submission()
    pdf = pdfs.make_pdf("one", "two", page=b"/Rotate 90")
    draw_later(make_artifact(submission, ArtifactKind.PRIVACY_PROOF, pdf, "proof.pdf").upload)
    assert draw_next()
    client.force_login(make_reviewer())
    proof = live_server.url + reverse("reviews:proof", args=[submission.pk])
    context = browser.new_context()
    session = client.cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url, "sameSite": "Lax"}])
    page = context.new_page()
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(proof)
        image = page.get_by_alt_text("Page 1 of 2")
        expect(image).to_be_visible()
        assert image.evaluate(f"async image => {{ await image.decode(); return ({LOADED})(image) }}") == 1287
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    # At the width of a phone its text is too small to read.
    page.get_by_role("link", name="Page 1 of 2 at full size").press("Enter")
    page.wait_for_url("**/1.webp")
    assert page.locator("img").evaluate("image => image.naturalWidth") == 1287
    frame = f'<iframe sandbox src="{proof}" width="900" height="600"></iframe>'
    page.route("**/frame", lambda route: route.fulfill(body=frame, content_type="text/html"))
    with page.expect_response("**/1.webp") as response:
        page.goto(f"{live_server.url}/frame")
    assert response.value.status == 200
    expect(page.frame_locator("iframe").get_by_alt_text("Page 2 of 2")).to_be_visible()
