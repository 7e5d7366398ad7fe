"""What is private or anonymous occurs at no address that others can open: every address of the site is opened."""

import re
from collections.abc import Iterator
from functools import lru_cache
from io import StringIO
from pathlib import Path

import pytest
from django.core.mail import EmailMessage
from django.core.management import call_command
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.boards.boards import boards_of, stored_boards
from docvqa_site.challenge.models import Anonymity, Track
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET, RANKINGS
from docvqa_site.evaluation import models
from docvqa_site.evaluation.notifications import notify_team
from docvqa_site.evaluation.rehearsal import rehearse
from docvqa_site.evaluation.test_sets.parts import reveal
from docvqa_site.submissions.models import Run, RunState, Submission, SubmissionState
from docvqa_site.submissions.publication import give_name, publish
from evaluator.messages.jobs import ArtifactKind, GroupScore, ScoringDetail
from tests.docvqa_site.factories import (
    change_results,
    make_artifact,
    make_organizer,
    make_run,
    make_submission,
    make_team,
    make_track,
    owner_of,
)

pytestmark = pytest.mark.django_db

TITLE, TEAM, SLUG = "Hidden gem", "Quiet Owls", "quiet-owls"
# They show nothing of submissions: accounts, the administration, which asks for a login, and the API's description.
LEFT_OUT = ("admin/", "account/", "api/v1/docs", "api/v1/openapi.json")
QUERIES = (
    "?q=Hidden",
    "?q=Quiet",
    f"?team={SLUG}",
    "?code=1&best=1&sort=newest",
    "?rank=none",
    "?epsilon=4",
    "?epsilon=4&rank=none&more=1",
    "?phase=Submissions",
)


@pytest.fixture(params=RANKINGS.values(), ids=list(RANKINGS))
def track(request: pytest.FixtureRequest) -> Track:
    return make_track(
        request.param,
        slug="track",
        budgets=[4],
        allows_private=True,
        anonymity=Anonymity.UNTIL_NAMED,
        anls_threshold=0.5,
    )


def made(track: Track, **fields: object) -> Submission:
    team = make_team(name=TEAM, slug=SLUG)
    texts = {"title": TITLE, "description": "By the owls.", "code_url": "https://owls.example/code"}
    submission = make_submission(team, track, state=SubmissionState.SUBMITTED, **{**texts, **fields})
    make_run(
        submission,
        state=RunState.SCORED,
        budget=track.run_budgets()[0],
        epsilon=3.0,
        joint_epsilon=7654.3211,
        joint_runs=86753094213,
        checks=[{"id": "team.declared_runs", "status": "passed", "found": "86753094213 accounted for"}],
    )
    # So that no page is empty.
    other = make_submission(track=track, state=SubmissionState.SUBMITTED)
    make_run(other, state=RunState.SCORED, budget=track.run_budgets()[0], epsilon=3.5)
    return submission


def addresses(submission: Submission) -> list[str]:
    """Every address of the site, those with parts in them filled with what belongs to the submission."""
    run = submission.runs.get()
    values = {
        "submission_id": str(submission.pk),
        "run_id": str(run.pk),
        "artifact_id": str(run.pk),
        "team": SLUG,
        "name": "submissions",
        "kind": "csv",
        "number": "1",
        "examination_id": "1",
        "token_id": "1",
    }
    found = []
    for path in _paths(get_resolver().url_patterns, ""):
        slug = SLUG if path.startswith("teams/") else submission.track.slug
        address = "/" + path.replace("<slug:slug>", slug).replace("<slug>", slug)
        for name, value in values.items():
            for converter in ("", "uuid:", "str:", "slug:", "path:", "int:"):
                address = address.replace(f"<{converter}{name}>", value)
        found.append(address)
    boards = [f"/leaderboard/{submission.track.slug}/", f"/api/v1/leaderboards/{submission.track.slug}"]
    return [*found, *(board + query for board in boards for query in QUERIES)]


def _paths(patterns: list[URLPattern | URLResolver], before: str) -> Iterator[str]:
    for pattern in patterns:
        path = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _paths(pattern.url_patterns, path)
        elif not path.startswith(LEFT_OUT):
            yield path


def places_of(client: Client, submission: Submission, *texts: str) -> set[tuple[str, str]]:
    """The texts that occur at an address, in the content or a header, each with the address."""
    return {
        (text, address)
        for address in addresses(submission)
        for text in texts
        if text in shown(client, address)
    }


@lru_cache(maxsize=1)
def shown(client: Client, address: str) -> str:
    """What is sent from an address, without what it repeats of the address itself."""
    response = client.get(address)
    if response.status_code in {302, 405}:
        return ""
    text = response.getvalue().decode(errors="replace") + str(response.headers)
    # The digits of a time may be those of a score.
    text = TIME.sub("", text)
    return text.replace(address, "").replace(address.replace("&", "&amp;"), "").replace(f"team={SLUG}", "")


def test_a_draft_of_a_track_and_its_test_occur_at_no_address_that_others_open(client: Client) -> None:
    track = make_track(name=TITLE, slug="hidden", is_draft=True)
    tested = rehearse(track, make_organizer()).submission
    for visitor in (None, owner_of(make_team()), make_organizer("view_user")):
        if visitor is not None:
            client.force_login(visitor)
        shown.cache_clear()
        assert not places_of(client, tested, TITLE, tested.title)


TIME = re.compile(r"\d\d:\d\d:\d\d(\.\d+)?")
# What is shown of a private ANLS of 0.61734 and of a whole of 0.72694 anywhere, and their difference from the public.
PRIVATE, WHOLE, DIFFERENCE = "0.6173", "0.7269", "0.1826"


# So many that hashes and keys on the pages don't have these digits by chance.
QUESTIONS = 917_354_286_053_187


def split(submission: Submission) -> models.TestSet:
    """Give the submission's run a score on both parts of its test set."""
    run = submission.runs.get()
    change_results(run, anls=0.79995, accuracy=0.7, anls_low=0.75, anls_high=0.85)
    evaluation = run.evaluations.create(attempt=1, step="scoring", state=models.EvaluationState.PASSED)
    groups = [
        GroupScore(
            by=by,
            group=name,
            part=part,
            questions=QUESTIONS,
            anls=anls,
            anls_low=0.6171,
            anls_high=0.6175,
            accuracy=0.617,
        )
        for by, name, part, anls in (
            ("all", "all", "", 0.72694),
            ("part", "public", "", 0.79995),
            ("part", "private", "", 0.61734),
            ("key", "total", "", 0.72694),
            ("key", "total", "public", 0.79995),
            ("key", "total", "private", 0.61734),
        )
    ]
    evaluation.reports.create(
        step="scoring", outcome="passed", detail=ScoringDetail(groups=groups).model_dump(mode="json")
    )
    Track.objects.update(test_set="split")
    Run.objects.filter(pk=run.pk).update(rules={**run.rules, "test_set": "split"})
    return models.TestSet.objects.create(
        name="split", sha256="0" * 64, split_sha256="5" * 64, private_fraction=0.4
    )


def traces(submission: Submission) -> tuple[str, ...]:
    return TITLE, str(submission.pk), str(submission.runs.get().pk)


def logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.parametrize("track", [BEST_ANLS_AT_BUDGET], indirect=True)
def test_no_competitor_sees_a_private_submission(track: Track) -> None:
    submission = made(track, published_at=None, keep_private=True)
    client = logged_in(owner_of(track.submissions.exclude(title=TITLE).get().team))
    assert places_of(client, submission, *traces(submission), TEAM) == {(TEAM, f"/teams/{SLUG}/")}


@pytest.mark.parametrize("track", [BEST_ANLS_AT_BUDGET], indirect=True)
def test_no_reviewer_sees_a_private_submission(track: Track) -> None:
    submission = made(track, published_at=None, keep_private=True)
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF, TITLE.encode(), "proof.md")
    client = logged_in(make_organizer("review_proofs"))
    assert TITLE not in client.get(reverse("reviews:queue")).text
    for address in (
        reverse("reviews:proof", args=[submission.pk]),
        reverse("reviews:desk", args=[submission.pk]),
        submission.get_absolute_url(),
    ):
        response = client.get(address)
        assert response.status_code in {403, 404}
        assert TITLE not in response.text


def test_a_private_submission_occurs_nowhere_until_its_team_publishes_it(
    client: Client, track: Track
) -> None:
    submission = made(track, published_at=None, keep_private=True)
    assert places_of(client, submission, *traces(submission), TEAM) == {(TEAM, f"/teams/{SLUG}/")}
    assert client.get(submission.get_absolute_url()).status_code == 404
    # The walk would have found it.
    publish(submission, owner_of(submission.team))
    shown.cache_clear()
    board = "/leaderboard/track/" + ("" if track.run_budgets() == [None] else "?epsilon=4")
    exports = ["/leaderboard/track.csv", "/leaderboard/track.json", "/leaderboard/track/feed/"]
    for address in ("/", board, *exports, f"/teams/{SLUG}/", submission.get_absolute_url()):
        assert TITLE in client.get(address).text


def test_nothing_leads_from_an_anonymous_submission_to_its_team_until_the_team_is_named(
    client: Client, track: Track
) -> None:
    submission = made(track, anonymous=True, alias="Anonymous 7f3a9c")
    own_page, hidden = f"/teams/{SLUG}/", (TEAM, SLUG, "owls", "7654.3211", "86753094213")
    found = places_of(client, submission, *hidden, *traces(submission), submission.alias)
    assert {address for text, address in found if text in hidden} == {own_page}
    assert {text for text, address in found if address == own_page} <= set(hidden)
    for address in (submission.get_absolute_url(), reverse("submissions:bibtex", args=[submission.pk])):
        assert "Anonymous 7f3a9c" in client.get(address).text
    give_name(submission, owner_of(submission.team))
    page = client.get(submission.get_absolute_url()).text
    assert TEAM in page
    assert "By the owls." in page
    assert "Anonymous" not in page
    assert TITLE in client.get(own_page).text


@pytest.mark.parametrize("track", [BEST_ANLS_AT_BUDGET], indirect=True)
def test_no_private_score_occurs_anywhere_for_anybody_but_organizers_until_it_is_revealed(
    client: Client, track: Track, tmp_path: Path, mailoutbox: list[EmailMessage]
) -> None:
    submission = made(track)
    test_set, owner = split(submission), owner_of(submission.team)
    secrets = (PRIVATE, "0.617", WHOLE, DIFFERENCE, f"{QUESTIONS}", f"{QUESTIONS:,}")
    # The team itself sees all that a visitor and a competitor do, and more.
    assert places_of(logged_in(owner), submission, *secrets) == set()
    assert "public part of the secret test set (about 60" in client.get("/leaderboard/track/").text
    notify_team(submission.runs.get(), [])
    assert not any(secret in mail.body for mail in mailoutbox for secret in secrets)
    call_command("freeze", str(tmp_path / "before"), stdout=StringIO())
    frozen = "".join(file.read_text() for file in (tmp_path / "before").iterdir())
    assert not any(secret in frozen for secret in secrets)
    assert '"scored_on": "public"' in frozen
    # The walk would have found it.
    track.phases.update(ends_at=timezone.now())
    assert reveal(test_set, "", actor=owner) == ""
    exports = ["/leaderboard/track.csv", "/leaderboard/track.json"]
    for address in ("/leaderboard/track/?epsilon=4", *exports, submission.get_absolute_url()):
        page = client.get(address).text
        assert PRIVATE in page
        assert "0.7999" in page
        assert WHOLE not in page
    call_command("freeze", str(tmp_path / "after"), stdout=StringIO())
    assert PRIVATE in (tmp_path / "after" / "track.csv").read_text()


def test_a_withdrawn_submission_stays_private_or_anonymous(client: Client, track: Track) -> None:
    submission = made(track, anonymous=True, alias="Anonymous 7f3a9c")
    Submission.objects.filter(pk=submission.pk).update(state=SubmissionState.WITHDRAWN)
    page = client.get(submission.get_absolute_url())
    assert page.status_code == 410
    assert "Anonymous 7f3a9c" in page.text
    assert TEAM not in page.text
    Submission.objects.filter(pk=submission.pk).update(published_at=None)
    assert client.get(submission.get_absolute_url()).status_code == 404


def test_snapshots_leave_out_what_is_private_and_the_teams_of_what_is_anonymous(
    track: Track, tmp_path: Path
) -> None:
    made(track, anonymous=True, alias="Anonymous 7f3a9c", published_at=None)
    for number in (1, 2):
        call_command("freeze", str(tmp_path / f"{number}"), stdout=StringIO())
        text = "".join(file.read_text() for file in (tmp_path / f"{number}").iterdir())
        assert (TITLE in text) is (number == 2)
        assert TEAM not in text
        Submission.objects.filter(title=TITLE).update(published_at="2030-01-01T00:00Z")


def test_the_rules_and_the_database_list_the_same(track: Track) -> None:
    made(track, published_at=None)
    (rules,), (stored,) = boards_of(track), stored_boards(track)
    assert [row.entry.run for row in rules.rows] == [row.entry.run for row in stored]
    assert len(rules.rows) == 1


def test_of_a_team_with_a_named_and_an_anonymous_method_the_best_of_each_team_shows_both(
    client: Client, track: Track
) -> None:
    submission = made(track, anonymous=True, alias="Anonymous 7f3a9c")
    named = make_submission(submission.team, track, state=SubmissionState.SUBMITTED, title="Named method")
    make_run(named, state=RunState.SCORED, budget=track.run_budgets()[0], epsilon=3.0)
    epsilon = "" if track.run_budgets() == [None] else "&epsilon=4"
    page = client.get(f"/leaderboard/track/?best=1{epsilon}").text
    assert TITLE in page
    assert "Named method" in page
