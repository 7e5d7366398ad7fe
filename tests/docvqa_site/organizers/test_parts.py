import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from docvqa_site.evaluation import models
from docvqa_site.submissions.models import Run
from docvqa_site.teams.models import Membership
from tests.docvqa_site.evaluation.messages import make_detail, make_group
from tests.docvqa_site.factories import (
    make_organizer,
    make_run,
    make_submission,
    make_track,
    make_user,
    sign_in_organizer,
)

pytestmark = pytest.mark.django_db

ADDRESS = "/organize/test-sets/secret/"


@pytest.fixture
def organizer(client: Client):
    return sign_in_organizer(client, "organize", "change_track", "view_submission")


@pytest.fixture
def track():
    track = make_track(anls_threshold=0.5, test_set="secret", closes_at=timezone.now() - timedelta(days=1))
    models.TestSet.objects.create(name="secret", sha256="0" * 64, split_sha256="5" * 64, private_fraction=0.4)
    for title, sent, public, private in (
        ("Fitted", 1, 0.9, 0.4),
        ("Steady", 2, 0.7, 0.72),
        ("Low", 3, 0.4, 0.6),
    ):
        add_run(track, title, sent, public, private)
    return track


def add_run(track, title, sent, public, private) -> Run:
    submission = make_submission(track=track, state="submitted", title=title)
    run = make_run(submission, state="scored", anls=public, bytes_total=sent)
    evaluation = run.evaluations.create(attempt=1, step="scoring", state=models.EvaluationState.PASSED)
    ends = {"anls_low": private, "anls_high": private}
    detail = make_detail(make_group(by="part", group="private", anls=private, **ends))
    evaluation.reports.create(step="scoring", outcome="passed", detail=detail.model_dump(mode="json"))
    return run


def page(client: Client) -> str:
    answer = client.get(ADDRESS)
    assert answer.status_code == 200
    return answer.text


def cells(text: str, title: str) -> list[str]:
    row = next(row for row in text.split("<tr>") if title in row)
    return [
        re.sub(r"<div.*?</div>|<[^>]+>", "", cell)
        for cell in re.findall(r'<td class="num"[^>]*>.*?</td>', row)
    ]


def confirm(client: Client, text: str, **fields):
    seen = re.search(r'name="seen" value="(\w+)"', text).group(1)
    return client.post(ADDRESS, {"reason": "As announced.", "confirmed": "yes", "seen": seen, **fields})


def test_organizers_see_both_scores_their_difference_and_what_revealing_does(
    client: Client, organizer, track
) -> None:
    assert "Test set secret" in client.get("/organize/").text
    text = page(client)
    assert cells(text, "Fitted") == ["0.9000", "0.4000", "-0.5000", "1", "–"]
    assert cells(text, "Steady") == ["0.7000", "0.7200", "+0.0200", "2", "1"]
    assert cells(text, "Low") == ["0.4000", "0.6000", "+0.2000", "–", "2"]
    for sentence in ("1 run loses its rank", "1 run gets a rank", "1 run changes rank"):
        assert f"{track}: {sentence}." in text


def test_what_is_confirmed_is_revealed_and_the_page_stays(client: Client, organizer, track) -> None:
    before = page(client)
    assert confirm(client, before).status_code == 302
    assert list(Run.objects.order_by("bytes_total").values_list("anls", flat=True)) == [0.4, 0.72, 0.6]
    after = page(client)
    for title in ("Fitted", "Steady", "Low"):
        assert cells(after, title) == cells(before, title)
    assert "Reveal the private part" not in after
    assert "private part. As announced." in client.get(f"/tracks/{track.slug}/").text


def test_without_confirmation_or_with_another_effect_by_now_nothing_is_revealed(
    client: Client, organizer, track
) -> None:
    text = page(client)
    unconfirmed = confirm(client, text, confirmed="").text
    assert "Nothing was revealed." in unconfirmed
    assert 'value="As announced."' in unconfirmed
    add_run(track, "Late", 4, 0.8, 0.3)
    assert "The effect has changed" in confirm(client, text).text
    assert models.TestSet.objects.get().revealed_at is None


def test_an_open_track_is_named_and_a_direct_post_changes_nothing(client: Client, organizer, track) -> None:
    text = page(client)
    track.phases.update(ends_at=None)
    assert f"{track} is still open" in page(client)
    assert "is still open" in confirm(client, text).text
    assert models.TestSet.objects.get().revealed_at is None


def test_whoever_competes_sees_no_private_score_of_the_track(client: Client, organizer, track) -> None:
    Membership.objects.create(team=track.submissions.first().team, user=organizer)
    text = page(client)
    assert "3 runs from tracks in which your team competes are left out" in text
    assert "Fitted" not in text
    assert "0.7200" not in text
    # The mean of all differences, and whose rank changes, would give them away.
    assert "with the mean, and" in text
    assert "loses its rank" not in text
    assert "Rank changes are hidden" in text


@pytest.mark.parametrize(
    "permissions", [["view_submission"], ["organize", "view_submission"], ["organize", "change_track"]]
)
def test_staff_without_every_permission_is_sent_away(client: Client, track, permissions) -> None:
    client.force_login(make_organizer(*permissions))
    assert client.get(ADDRESS).status_code == client.post(ADDRESS).status_code == 403


def test_others_and_other_addresses_find_nothing(client: Client, organizer, track) -> None:
    models.TestSet.objects.create(name="whole", sha256="0" * 64)
    assert client.get("/organize/test-sets/whole/").status_code == 404
    assert client.put(ADDRESS).status_code == 405
    client.force_login(make_user())
    assert client.get(ADDRESS).status_code == 403


def test_the_number_of_queries_does_not_grow_with_the_runs(
    client: Client, organizer, track, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with CaptureQueriesContext(connection) as few:
        page(client)
    for number in range(5):
        add_run(track, f"More {number}", 5, 0.6, 0.6)
    with django_assert_num_queries(len(few)):
        page(client)
