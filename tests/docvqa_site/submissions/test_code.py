"""Tracks that require a description and code: what counts, what is said where it is missing, and who reads it."""

import pytest
from django.urls import reverse
from django.utils import timezone

from docvqa_site.submissions.code import missing_code, missing_description, names_commit
from docvqa_site.submissions.draft_problems import problems_of
from docvqa_site.uploads.stores import current_store
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import (
    make_artifact,
    make_reviewer,
    make_run,
    make_submission,
    make_team,
    scored_submission,
)
from tests.docvqa_site.submissions.drafts import make_private_track
from tests.docvqa_site.submissions.pages import page

pytestmark = pytest.mark.django_db
COMMIT = "3f2a9c1d4e5b6a7980f1e2d3c4b5a69788f9e0d1"
LINK = f"https://code.example/lab/method/commit/{COMMIT}"


def code_problems(draft):
    return [problem for problem in (missing_description(draft), missing_code(draft)) if problem]


@pytest.fixture
def draft():
    submission = make_submission(make_team(), make_private_track(requires_code=True))
    make_run(submission, budget=1.0)
    make_run(submission, budget=4.0)
    return submission


@pytest.mark.parametrize(
    ("link", "is_commit"),
    [
        (LINK, True),
        ("https://code.example/lab/method/commit/3f2a9c1", True),
        (f"https://code.example/lab/method/-/tree/{COMMIT}/src", True),
        ("https://code.example/lab/method/archive/3f2a9c1d.zip", True),
        ("https://doi.org/10.5281/zenodo.1234567", True),
        ("https://code.example/lab/method", False),
        ("https://code.example/lab/method/tree/main", False),
        ("https://code.example/lab/decade1/method", False),
        ("", False),
    ],
)
def test_a_link_must_lead_to_one_version(link, is_commit):
    assert names_commit(link) is is_commit


def test_labels_say_which_tracks_require_description_and_code(client, draft):
    make_private_track(slug="lenient", name="Lenient track")
    client.force_login(draft.created_by)
    create, edit = reverse("submissions:create"), reverse("submissions:edit", args=[draft.pk])
    for address in (create, edit):
        page = client.get(address).text
        needed = f"required in “{draft.track}”" if address == create else "required"
        assert f'Description <span class="optional">({needed})</span>' in page
        unless = f"{needed} unless each run has files of the code"
        assert f'Link to the code <span class="optional">({unless})</span>' in page
        assert 'Link to a paper <span class="optional">' in page


def test_description_and_code_are_missing_until_they_are_there(client, draft):
    assert [problem.message for problem in code_problems(draft)] == [
        "The description of the method is missing.",
        "The code of the method is missing.",
    ]
    client.force_login(draft.created_by)
    page = client.get(draft.get_absolute_url()).text
    assert "The code of the method is missing." in page
    assert "This track requires a description and code" in page
    type(draft).objects.update(practice=True)
    page = client.get(draft.get_absolute_url()).text
    assert "requires a description and code for a rank. Practice needs neither." in page
    assert "The code of the method is missing." not in page
    draft.description, draft.code_url = "It adds noise.", "https://code.example/lab/method"
    assert [problem.found for problem in code_problems(draft)] == ["https://code.example/lab/method"]
    draft.save()
    assert '<span class="step-state">code missing</span>' in client.get(draft.get_absolute_url()).text
    draft.code_url = LINK
    assert code_problems(draft) == []


def test_a_draft_without_runs_lists_everything_that_is_missing():
    empty = make_submission(make_team(), make_private_track(requires_code=True))
    messages = " ".join(problem.message for problem in problems_of(empty, timezone.now()))
    for missing in (
        "Add at least one run",
        "privacy proof",
        "description of the method",
        "code of the method",
    ):
        assert missing in messages


def test_files_of_every_run_count_as_code(draft):
    draft.description = "It adds noise."
    first, second = draft.runs.all()
    make_artifact(first, ArtifactKind.SETTINGS)
    assert len(code_problems(draft)) == 1
    make_artifact(second, ArtifactKind.METHOD_FILE)
    assert code_problems(draft) == []


def test_a_link_that_may_change_is_pointed_out_where_no_code_is_required_too(client):
    draft = make_submission(code_url="https://code.example/lab/method")
    client.force_login(draft.created_by)
    assert "doesn't lead to a commit" in page(client, "detail", draft.pk)
    draft.code_url = LINK
    draft.save()
    assert "lead to a commit" not in page(client, "detail", draft.pk)


def test_other_tracks_require_neither():
    assert code_problems(make_submission()) == []


def test_reviewers_read_the_description_and_the_files_and_the_public_the_link(client):
    submission = scored_submission()
    submission.description, submission.code_url = "It adds noise.", LINK
    submission.save()
    run = submission.runs.get()
    content = b"method: mine\r\n\nrounds: 5 # <script>\n"
    artifact = make_artifact(run, ArtifactKind.SETTINGS, content, "settings.yaml")
    address = reverse("reviews:code_file", args=[submission.pk, artifact.pk])
    client.force_login(make_reviewer())
    desk = client.get(reverse("reviews:desk", args=[submission.pk])).text
    assert "It adds noise." in desk
    assert f'<a href="{address}">settings.yaml at ε = ' in desk.replace("&nbsp;", " ").replace("\xa0", " ")
    plain = client.get(address + "?plain")
    assert (plain.content, plain["Content-Type"]) == (content, "text/plain; charset=utf-8")
    shown = client.get(address).text
    assert "<code>rounds: 5 # &lt;script&gt;</code></li>" in shown
    assert '<li id="L3"><a href="#L3"' in shown
    assert "3 lines." in shown
    assert "<h1>settings.yaml</h1>" in shown
    desk = reverse("reviews:desk", args=[submission.pk])
    assert f'href="{desk}">Back to the review</a>' in shown
    current_store().delete(artifact.upload.store_key)
    assert client.get(address).status_code == 404
    client.force_login(make_team().memberships.get().user)
    assert client.get(address).status_code == 404
    client.logout()
    assert LINK in client.get(submission.get_absolute_url()).text
