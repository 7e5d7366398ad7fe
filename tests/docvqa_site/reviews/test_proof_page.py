import json
import re
from datetime import timedelta
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.proofs.models import Drawing
from docvqa_site.uploads.stores import current_store
from evaluator.errors import ErrorCode, Problem
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import (
    make_artifact,
    make_organizer,
    make_reviewer,
    make_submission,
    make_team,
    make_track,
    make_upload,
    make_user,
    revise_proof,
)
from tests.docvqa_site.proofs.pages import add_pages

pytestmark = pytest.mark.django_db


def submission_with(content, filename, **fields):
    submission = make_submission(track=make_track(BEST_ANLS_AT_BUDGET), **fields)
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF, content, filename)
    return submission


def address(submission):
    return reverse("reviews:proof", args=[submission.pk])


@pytest.fixture
def submission():
    return submission_with(b"# Theorem\n\n<script>alert(1)</script>", "proof.md")


def test_staff_and_the_team_read_it(client, submission):
    for reader in (submission.created_by, make_organizer()):
        client.force_login(reader)
        page = client.get(address(submission))
        assert page.status_code == 200
        assert '<h2 id="proof-theorem">Theorem</h2>' in page.text
        assert "<script" not in page.text


def test_it_is_a_page_of_the_site_that_leads_back_to_the_review(client, submission):
    """Without forms or scripts, which its policy forbids."""

    def way_back(reader, submission):
        client.force_login(reader)
        pages = [
            client.get(reverse(f"reviews:{name}", args=[submission.pk]))
            for name in ("proof", "proof_changes")
        ]
        for page in pages:
            assert page.text.count('<header class="site-header">') == 1
            assert "Skip to the content" in page.text
            assert not re.search("<form|<script|csrf", page.text)
            assert f'<a href="{reverse("account_logout")}">Log out</a>' in page.text
        (way,) = {re.search('href="([^"]*)">(Back to [^<]*)<', page.text).groups() for page in pages}
        assert all(f'<li><a href="{way[0]}">' in page.text for page in pages)
        return way

    page_of_draft = (submission.get_absolute_url(), "Back to the submission")
    assert way_back(submission.created_by, submission) == page_of_draft
    assert way_back(make_organizer(), submission) == page_of_draft
    sent = submission_with(b"# Theorem", "proof.md", state="submitted")
    desk, team = (reverse(f"reviews:{name}", args=[sent.pk]) for name in ("desk", "team"))
    assert way_back(sent.created_by, sent) == (team, "Back to the review")
    assert way_back(make_reviewer(), sent) == (desk, "Back to the review")
    # To the question that the reviewer came from, and reached by keyboard before a proof that may be long.
    page = client.get(address(sent) + "?question=noise").text
    assert f'href="{desk}#item-noise">Back to the review</a>' in page
    assert page.index("Back to the review") < page.index("Theorem</h2>")
    assert f'href="{desk}">Back to the review</a>' in client.get(address(sent) + '?question="><b>').text
    framed = client.get(address(sent) + "?framed").text
    assert "Theorem" in framed
    assert "site-header" not in framed


def test_for_others_there_is_no_such_page(client, submission):
    for reader in (make_user(), make_team().memberships.get().user):
        client.force_login(reader)
        assert client.get(address(submission)).status_code == 404


def test_visitors_log_in_first(client, submission):
    response = client.get(address(submission))
    assert response.status_code == 302
    assert response.url.startswith(reverse(settings.LOGIN_URL))


def test_what_is_missing_is_not_found(client, submission):
    client.force_login(make_organizer())
    assert client.get(reverse("reviews:proof", args=[uuid4()])).status_code == 404
    assert client.get(address(make_submission())).status_code == 404
    current_store().delete(submission.proof().upload.store_key)
    assert client.get(address(submission)).status_code == 404


def test_it_is_only_read(client, submission):
    client.force_login(submission.created_by)
    assert client.post(address(submission)).status_code == 405


def test_the_headers_forbid_the_browser_to_run_or_load_anything(client, submission):
    client.force_login(submission.created_by)
    page = client.get(address(submission))
    policy = dict(directive.partition(" ")[::2] for directive in page["Content-Security-Policy"].split("; "))
    assert policy["sandbox"] == "allow-popups allow-popups-to-escape-sandbox allow-downloads"
    assert policy["default-src"] == "'none'"
    assert policy["img-src"] == "'self' data:"
    assert policy["frame-ancestors"] == "'self'"
    assert "script-src" not in policy
    assert page["X-Frame-Options"] == "SAMEORIGIN"
    assert page["X-Content-Type-Options"] == "nosniff"
    assert page["Cache-Control"] == "private, no-store"


@pytest.mark.parametrize(
    ("content", "filename"), [(b"{", "proof.ipynb"), (b"\xff", "proof.md"), (b"x", "proof.html")]
)
def test_an_unreadable_proof_is_a_coded_problem_in_the_same_sandbox(client, content, filename):
    submission = submission_with(content, filename)
    client.force_login(submission.created_by)
    page = client.get(address(submission))
    assert page.status_code == 422
    assert "E_PROOF_FORMAT" in page.text
    assert page["Content-Security-Policy"].startswith("sandbox ")


def test_a_notebook_is_shown_without_its_html(client):
    cell = {
        "cell_type": "code",
        "source": "1 < 2",
        "outputs": [
            {"output_type": "execute_result", "data": {"text/html": "<b>HTML</b>", "text/plain": "True"}}
        ],
    }
    submission = submission_with(json.dumps({"nbformat": 4, "cells": [cell]}).encode(), "proof.ipynb")
    client.force_login(submission.created_by)
    page = client.get(address(submission))
    assert "1 &lt; 2" in page.text
    assert "True" in page.text
    assert "HTML" not in page.text


def test_the_file_is_saved_never_opened_in_place(client):
    submission = submission_with(b"%PDF-1.7", "proof.pdf")
    client.force_login(submission.created_by)
    response = client.get(reverse("reviews:proof_file", args=[submission.pk]), follow=True)
    assert b"".join(response.streaming_content) == b"%PDF-1.7"
    assert response["Content-Disposition"] == 'attachment; filename="proof.pdf"'
    assert response["X-Content-Type-Options"] == "nosniff"


class TestPages:
    """Of a PDF; how they are drawn is tested in tests/docvqa_site/proofs."""

    @pytest.fixture
    def submission(self):
        submission = submission_with(b"%PDF-1.7", "proof.pdf")
        add_pages(submission.artifacts.get(), "Theorem <1>", "Proof")
        return submission

    def test_each_is_an_image_with_its_size_and_its_text(self, client, submission):
        client.force_login(make_organizer())
        page = client.get(address(submission))
        assert page.status_code == 200
        assert len(images_in(page)) == 2
        assert 'width="910" height="1287" loading="lazy" decoding="async" alt="Page 2 of 2"' in page.text
        assert "Theorem &lt;1&gt;" in page.text
        assert "sandbox" not in page["Content-Security-Policy"]
        image = client.get(images_in(page)[0])
        assert (image.content, image["Content-Type"]) == (b"image 1", "image/webp")
        assert image["X-Content-Type-Options"] == "nosniff"
        assert image["Cache-Control"] == "private, no-store"
        assert image["Content-Security-Policy"] == "default-src 'none'; sandbox"

    def test_an_address_works_without_a_session_as_long_as_its_person_may_read_the_proof(
        self, client, submission
    ):
        # A frame without rights sends no cookies.
        client.force_login(submission.created_by)
        image = images_in(client.get(address(submission)))[0]
        client.logout()
        assert client.get(image).status_code == 200
        submission.team.memberships.all().delete()
        assert client.get(image).status_code == 404

    def test_an_address_ends_and_cannot_be_made_up_or_used_for_another_page(
        self, client, submission, monkeypatch
    ):
        client.force_login(submission.created_by)
        image = images_in(client.get(address(submission)))[1]
        token = image.split("/")[-2]
        for number in (0, 3, 999):
            assert client.get(reverse("reviews:proof_page", args=[token, number])).status_code == 404
        assert client.get(reverse("reviews:proof_page", args=[token[:-1] + "!", 1])).status_code == 404
        assert client.post(image).status_code == 405
        monkeypatch.setattr("docvqa_site.reviews.proof_views.PAGES_SECONDS", -1)
        assert client.get(image).status_code == 404

    def test_what_waits_or_failed_says_so_and_offers_the_file(self, client, submission):
        client.force_login(submission.created_by)
        Drawing.objects.update(state="waiting")
        page = client.get(address(submission))
        assert "More pages of this PDF are being rendered" in page.text
        assert "should have been" not in page.text
        Drawing.objects.update(created_at=timezone.now() - timedelta(hours=1))
        assert "This is taking longer than it should" in client.get(address(submission)).text
        assert 'alt="Page 2"' in page.text
        problem = Problem.of(ErrorCode.PROOF_PAGES, found="99 pages").model_dump(mode="json")
        Drawing.objects.update(state="failed", problem=problem)
        page = client.get(address(submission))
        assert page.status_code == 422
        assert "E_PROOF_PAGES" in page.text
        assert reverse("reviews:proof_file", args=[submission.pk]) in page.text
        Drawing.objects.all().delete()
        assert "The pages of this PDF are being rendered" in client.get(address(submission)).text

    def test_the_number_of_queries_does_not_grow_with_the_pages(self, client, submission):
        client.force_login(submission.created_by)
        client.get(address(submission))
        with CaptureQueriesContext(connection) as few:
            client.get(address(submission))
        add_pages(submission.artifacts.get(), *(f"page {number}" for number in range(30)), first=3)
        with CaptureQueriesContext(connection) as many:
            client.get(address(submission))
        assert len(many) == len(few)


def images_in(page):
    return re.findall(r'<img src="([^"]*/proof-pages/[^"]+)"', page.text)


class TestVersions:
    @pytest.fixture
    def submission(self):
        submission = submission_with(b"# Claim\n\nsigma is 1.\n", "proof.md", state="submitted")
        upload = make_upload(submission.team, b"# Claim\n\nsigma is <2>.\n", "proof.md")
        revise_proof(submission, upload, submission.created_by)
        return submission

    def changes(self, client, submission, query=""):
        return client.get(reverse("reviews:proof_changes", args=[submission.pk]) + query)

    def test_the_proof_leads_to_what_changed(self, client, submission):
        client.force_login(submission.created_by)
        page = client.get(address(submission))
        link = reverse("reviews:proof_changes", args=[submission.pk]) + "?from=1&amp;to=2"
        assert link in page.text
        assert "Version 1</a>" in page.text
        assert "What changed" not in client.get(address(submission) + "?version=1").text
        revise_proof(submission, make_upload(submission.team, b"# New", "proof.md"), submission.created_by)
        page = client.get(address(submission))
        assert "?from=1&amp;to=3" in page.text
        assert "?from=2&amp;to=3" in page.text

    def test_changed_lines_are_named_in_words(self, client, submission):
        client.force_login(submission.created_by)
        page = self.changes(client, submission, "?from=1&to=2")
        assert page.status_code == 200
        assert "1 line removed, 1 line added" in page.text
        assert ">− removed</td>" in page.text
        assert "<del>sigma is <mark>1.</mark></del>" in page.text
        assert "<ins>sigma is <mark>&lt;2&gt;.</mark></ins>" in page.text
        assert page["Content-Security-Policy"].startswith("sandbox ")

    def test_a_version_that_does_not_exist_is_not_found(self, client, submission):
        client.force_login(submission.created_by)
        for query in ("?from=3", "?from=x", "?to=0", "?from=1&to=99999"):
            assert self.changes(client, submission, query).status_code == 404

    def test_text_that_is_not_known_is_a_problem(self, client, submission):
        revise_proof(
            submission, make_upload(submission.team, b"%PDF-1.7", "proof.pdf"), submission.created_by
        )
        client.force_login(submission.created_by)
        page = self.changes(client, submission)
        assert page.status_code == 422
        assert "E_PROOF_PAGES" in page.text
        add_pages(submission.proof(), "sigma is 3.")
        assert "<ins>sigma is <mark>3.</mark></ins>" in self.changes(client, submission).text


@pytest.mark.parametrize("name", ["proof", "proof_file", "proof_changes"])
def test_nothing_of_a_proof_is_found_by_others(client, submission, name):
    place = reverse(f"reviews:{name}", args=[submission.pk])
    assert client.get(place).status_code == 302
    assert client.post(place).status_code == 405
    for reader in (make_user(), make_team().memberships.get().user, make_organizer("view_user")):
        client.force_login(reader)
        assert client.get(place).status_code == 404


def test_a_hostile_file_name_is_text(client):
    submission = submission_with(b"text", "<script>alert(1)</script>.md")
    client.force_login(submission.created_by)
    assert "<script" not in client.get(address(submission)).text


def test_a_proof_that_announced_the_hash_of_another_shows_nothing_of_it(client, submission):
    client.force_login(submission.created_by)
    assert "Theorem" in client.get(address(submission)).text
    copier = submission_with(b"nothing", "proof.md")
    upload = copier.artifacts.get().upload
    upload.sha256 = submission.artifacts.get().upload.sha256
    upload.save()
    client.force_login(copier.created_by)
    page = client.get(address(copier))
    assert page.status_code == 422
    assert "E_ARTIFACT_HASH" in page.text
    assert "Theorem" not in page.text
