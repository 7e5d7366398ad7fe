import json
from uuid import uuid4

import pytest
from django.conf import settings
from django.urls import reverse

from evaluator.contracts import ArtifactKind
from portal.challenge.models import Ranking
from portal.uploads.stores import current_store
from tests.portal.factories import (
    make_artifact,
    make_organizer,
    make_submission,
    make_team,
    make_track,
    make_user,
)

pytestmark = pytest.mark.django_db


def submission_with(content, filename):
    submission = make_submission(track=make_track(Ranking.ANLS))
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
        assert "<h1>Theorem</h1>" in page.text
        assert "<script" not in page.text


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
    assert policy["sandbox"] == ""
    assert policy["default-src"] == "'none'"
    assert policy["img-src"] == "data:"
    assert policy["frame-ancestors"] == "'self'"
    assert "script-src" not in policy
    assert page["X-Frame-Options"] == "SAMEORIGIN"
    assert page["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    ("content", "filename"), [(b"{", "proof.ipynb"), (b"\xff", "proof.md"), (b"x", "proof.html")]
)
def test_an_unreadable_proof_is_a_coded_problem_in_the_same_sandbox(client, content, filename):
    submission = submission_with(content, filename)
    client.force_login(submission.created_by)
    page = client.get(address(submission))
    assert page.status_code == 422
    assert "E_PROOF_FORMAT" in page.text
    assert page["Content-Security-Policy"].startswith("sandbox;")


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


def test_a_pdf_is_downloaded_never_opened_in_place(client):
    submission = submission_with(b"%PDF-1.7", "proof.pdf")
    client.force_login(submission.created_by)
    response = client.get(address(submission), follow=True)
    assert b"".join(response.streaming_content) == b"%PDF-1.7"
    assert response["Content-Disposition"] == 'attachment; filename="proof.pdf"'
    assert response["X-Content-Type-Options"] == "nosniff"


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
