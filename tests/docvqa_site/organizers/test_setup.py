"""A track is set up in the browser: six steps make a draft that only organizers see, which is tested and published."""

import re
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core import mail
from django.core.files.uploadedfile import SimpleUploadedFile
from django.forms.models import model_to_dict
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.accounts.selectors import is_reviewer
from docvqa_site.accounts.services import make_organizer as make_organizer_of_all
from docvqa_site.accounts.services import make_reviewer, make_track_organizer, vouch_for_address
from docvqa_site.audit.models import AuditEntry
from docvqa_site.challenge.models import Phase, StaffInvitation, Track
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET, FEWEST_BYTES, RANKINGS
from docvqa_site.challenge.references import WEIGHTS as WEIGHTS_FILE
from docvqa_site.downloads.models import Download, DownloadKind
from docvqa_site.evaluation.intake.receiving import receive_report
from docvqa_site.evaluation.inventories import receive
from docvqa_site.evaluation.models import Inventory as StoredInventory
from docvqa_site.evaluation.rehearsal import rehearsal_of
from docvqa_site.notifications.models import Notification
from docvqa_site.organizers.setup.forms import KindForm
from docvqa_site.organizers.track_changes import in_words
from docvqa_site.reviews.models import ProofReview
from docvqa_site.submissions.models import Submission, SubmissionState
from docvqa_site.teams.models import Team
from evaluator.messages.inventories import Inventory
from evaluator.messages.jobs import CommunicationResult, ScoringResult, Step, ValidationResult
from tests.docvqa_site.accounts.codes import code_of
from tests.docvqa_site.evaluation.messages import make_report
from tests.docvqa_site.factories import (
    make_download,
    make_organizer,
    make_submission,
    make_team,
    make_track,
    make_user,
    sign_in_organizer,
)
from tests.docvqa_site.submissions.contents import checkpoint
from tests.docvqa_site.ui.test_pages import check

pytestmark = pytest.mark.django_db

CONFIRMED = {"confirmed": "yes"}
WEIGHTS, TEST_SET = "a" * 64, "b" * 64
NEW = "/organize/tracks/new/"
SETUP = "/organize/tracks/track-9/setup/"
PHASE = {
    "phases-TOTAL_FORMS": "2",
    "phases-INITIAL_FORMS": "1",
    "phases-0-name": "Development",
    "phases-0-submissions_per_day": "3",
    "phases-0-results": "at_once",
    "phases-0-anonymity": "none",
    "phases-0-examined_ranks": "0",
    "phases-0-examined_level": "3",
    "phases-1-name": "",
    "phases-1-submissions_per_day": "5",
    "phases-1-results": "at_once",
    "phases-1-anonymity": "none",
    "phases-1-examined_ranks": "0",
    "phases-1-examined_level": "3",
}


@pytest.fixture
def organizer(client: Client) -> User:
    return sign_in_organizer(client, "organize", "change_track", "add_track", "view_submission")


@pytest.fixture
def worker() -> None:
    receive(Inventory(worker="gpu", references={"vt5-tiny": WEIGHTS}, test_sets={"secret": TEST_SET}))


def begin(client: Client, ranking: str = FEWEST_BYTES.key, **fields: Any) -> Track:
    data = {"name": "Next year", "slug": "track-9", "ranking": ranking, **fields}
    assert client.post(NEW, data).status_code == 302
    return Track.with_drafts.get(slug="track-9")


def fill(client: Client, step: str, **fields: Any) -> Any:
    answer = client.post(f"{SETUP}{step}/", fields)
    assert answer.status_code == 302, re.findall(r'class="errorlist.*?</ul>', answer.text, re.DOTALL)
    return answer


def heading(html: str) -> str:
    return " ".join(re.sub("<[^>]+>", "", re.findall("<h1>(.*?)</h1>", html, re.DOTALL)[0]).split())


@pytest.mark.usefixtures("organizer")
def test_each_step_has_its_own_heading(client: Client) -> None:
    begin(client)
    steps = [heading(client.get(f"{SETUP}{step}").text) for step in ("texts/", "phases/", "")]
    assert len(set(steps)) == 3
    assert steps[2] == "Next year: check and publish draft"


def fill_all(client: Client, track: Track) -> None:
    """Save the steps between the first page and the publication."""
    fill(client, "texts", summary="Fewer bytes.", description="# Rules\n\nBe *kind*.")
    fill(client, "weights", reference="vt5-tiny", test_set="secret")
    phase = track.phases.get()
    counted = {"phases-0-requires_counted": "on", "phases-1-requires_counted": "on"}
    fill(
        client,
        "phases",
        **{**PHASE, **counted, "phases-0-id": str(phase.pk), "phases-0-track": str(track.pk)},
    )


@pytest.mark.usefixtures("organizer")
def test_a_step_that_is_saved_unchanged_leaves_no_entry(client: Client) -> None:
    track = begin(client)
    changes = AuditEntry.objects.filter(action="track.changed")
    fill(client, "texts", summary="Fewer bytes.", description="Be kind.")
    fill(client, "people", registration="none")
    assert [entry.details["changes"] for entry in changes] == [
        {"summary": ["", "Fewer bytes."], "description": ["", "Be kind."]}
    ]
    counted = {"phases-0-requires_counted": "on", "phases-1-requires_counted": "on", "phases-0-name": "First"}
    phase = {**PHASE, **counted, "phases-0-id": str(track.phases.get().pk), "phases-0-track": str(track.pk)}
    for _ in range(2):
        fill(client, "phases", **phase)
        last = changes.all().latest("pk").details["changes"]
        assert changes.all().count() == 2
        assert last["phase First, name"] == ["Submissions", "First"]


def begin_test(client: Client, ranking: str = FEWEST_BYTES.key) -> Track:
    """A draft with every step saved, whose test has begun."""
    track = begin(client, ranking)
    fill_all(client, track)
    assert client.post(f"{SETUP}test/")["Location"] == f"{SETUP}#test"
    return track


def finish_test(track: Track, sha256: str = WEIGHTS) -> None:
    """What a worker reports of the test's steps."""
    run = rehearsal_of(track)
    assert run is not None
    results = {
        Step.VALIDATE: ValidationResult(tensors=2, parameters=10, sha256=sha256, changed=[]),
        Step.COMMUNICATION: CommunicationResult(
            rounds=0, messages=0, bytes_total=0, bytes_down=0, bytes_up=0, bytes_needed=0, checks=[]
        ),
        Step.SCORING: ScoringResult(
            anls=0.25, accuracy=0.2, questions=8, test_set_sha256=TEST_SET, checkpoint_sha256=sha256
        ),
    }
    for step, result in results.items():
        evaluation = run.evaluations.latest("created_at")
        assert evaluation.step == step
        receive_report(make_report(evaluation, step, result=result))


def test_from_a_name_to_a_public_track_that_was_tested(client: Client, organizer: User, worker: None) -> None:
    assert NEW in client.get("/organize/").text
    track = begin(client)
    page = client.get(SETUP).text
    for missing in ("Missing: summary and description.", "Not chosen.", "The track hasn&#x27;t been tested."):
        assert missing in page
    fill_all(client, track)
    page = client.get(SETUP).text
    assert f"vt5-tiny, on 1 worker, SHA-256 {WEIGHTS[:12]}…" in page
    assert "Still missing: test." in page
    client.post(f"{SETUP}publish/", CONFIRMED)
    assert not Track.objects.exists()
    client.post(f"{SETUP}test/")
    assert "The test is in progress." in client.get(SETUP).text
    finish_test(track)
    assert "ANLS 0.25" in client.get(SETUP).text
    assert "A public track can't be removed." in client.get(SETUP).text
    assert "tick the box" in client.post(f"{SETUP}publish/", follow=True).text
    assert not Track.objects.exists()
    assert client.post(f"{SETUP}publish/", CONFIRMED)["Location"] == "/organize/tracks/track-9/"
    assert "Be <em>kind</em>." in client.get("/tracks/track-9/").text
    assert client.get("/leaderboard/track-9/").status_code == 200
    # Nothing is left of the test.
    assert not Submission.objects.exists()
    assert not Team.objects.exists()
    assert AuditEntry.objects.filter(actor=organizer, action="track.published").exists()


def test_a_preview_says_so_and_leads_back(client: Client, organizer: User, worker: None) -> None:
    begin(client)
    page = client.get(f"{SETUP}preview/").text
    assert "/leaderboard/" not in page.partition("<main")[2].partition("</main>")[0]
    assert "Preview of a draft." in page
    assert f'<a href="{SETUP}">Back to the setup</a>' in page
    assert "<title>Preview of Next year" in " ".join(page.split())
    assert page.count('aria-label="Breadcrumbs"') == 1


def test_a_published_track_is_announced_by_a_link_with_a_prepared_text(
    client: Client, organizer: User, worker: None
) -> None:
    sign_in_organizer(client, "organize", "change_track", "add_track", "view_user")
    finish_test(begin_test(client))
    page = client.post(f"{SETUP}publish/", CONFIRMED, follow=True).text
    link = re.search(r'<a href="(/organize/announcement/[^"]+)">Announce it', page)
    assert link
    form = client.get(unescape(link[1])).context["form"]
    assert form["audience"].value() == "everyone"
    assert form["on_news"].value()
    assert form["subject"].value() == "New track: Next year"
    address = f"{settings.SITE_URL}/tracks/track-9/"
    assert form["text"].value() == f"The track [Next year]({address}) is public. Fewer bytes."


def test_who_may_announce_nothing_is_offered_no_announcement(
    client: Client, organizer: User, worker: None
) -> None:
    finish_test(begin_test(client))
    page = client.post(f"{SETUP}publish/", CONFIRMED, follow=True).text
    assert "Next year is public." in page
    assert "/organize/announcement/" not in page


def test_a_test_that_waits_says_what_is_wrong_with_its_queue(
    client: Client, organizer: User, worker: None
) -> None:
    run = rehearsal_of(begin_test(client))
    assert run is not None
    assert "No worker is taking steps from" not in client.get(SETUP).text
    run.evaluations.update(step_queued_at=timezone.now() - timedelta(minutes=2))
    assert "No worker is taking steps from evaluator." in client.get(SETUP).text


def test_the_steps_of_a_test_are_listed_in_the_order_in_which_they_run(
    client: Client, organizer: User, worker: None
) -> None:
    track = begin_test(client)
    finish_test(track)
    run = rehearsal_of(track)
    assert run is not None
    later = run.evaluations.create(attempt=2, state="passed", step=Step.LEAKAGE)
    later.reports.create(step=Step.LEAKAGE, outcome="passed")
    shown = re.findall(r"<li>(\w+): passed", client.get(SETUP).text)
    assert shown == ["validate", "communication", "scoring", "leakage"]
    track.refresh_from_db()
    assert "The base weights passed validate, communication and scoring." in client.get(SETUP).text


@pytest.mark.parametrize("ranking", RANKINGS)
def test_a_track_of_every_kind_is_tested(client: Client, organizer: User, worker: None, ranking: str) -> None:
    track = begin_test(client, ranking=ranking)
    finish_test(track)
    assert "ANLS 0.25" in client.get(SETUP).text


def test_a_step_names_the_next_one_and_going_back_or_staying_saves_as_well(
    client: Client, organizer: User, worker: None
) -> None:
    track = begin(client)
    assert "Save and go back" not in client.get(f"{SETUP}kind/").text
    assert "Save and continue: Base weights and test set" in client.get(f"{SETUP}texts/").text
    assert "Save and continue: Check and publish" in client.get(f"{SETUP}people/").text
    back = fill(client, "texts", summary="Fewer bytes.", description="Be *kind*.", back="1")
    assert back["Location"] == f"{SETUP}kind/"
    assert "Be *kind*." in client.get(f"{SETUP}texts/").text
    ids = {"phases-0-id": str(track.phases.get().pk), "phases-0-track": str(track.pk)}
    ids |= {"phases-0-requires_counted": "on", "phases-1-requires_counted": "on"}
    assert fill(client, "phases", **PHASE, **ids, stay="1")["Location"] == f"{SETUP}phases/?another=1#another"
    assert 'open><summary id="another">' in client.get(f"{SETUP}phases/?another=1").text
    assert 'open><summary id="another">' not in client.get(f"{SETUP}phases/").text


def test_a_draft_is_seen_by_organizers_alone(client: Client, organizer: User, worker: None) -> None:
    track = begin_test(client)
    finish_test(track)
    for address in (SETUP, f"{SETUP}preview/", f"{SETUP}kind/"):
        assert client.get(address).status_code == 200
    for visitor in (Client(), _logged_in(make_user()), _logged_in(make_organizer("organize"))):
        assert visitor.get(SETUP).status_code in {302, 403}
    lists = (
        "/",
        "/tracks/",
        "/leaderboard/",
        "/data/",
        "/sitemap.xml",
        "/api/v1/tracks",
        "/api/v1/downloads",
        "/news/feed.atom",
    )
    for address in lists:
        assert "track-9" not in client.get(address).text, address
        assert "Next year" not in client.get(address).text, address
    assert "Next year" not in _logged_in(make_user()).get("/submissions/create/").text
    gone = ("/tracks/track-9/", "/tracks/track-9/deadline.ics", "/leaderboard/track-9/")
    exports = ("track-9.csv", "track-9.json", "track-9/feed/", "track-9/progress/")
    for address in (*gone, *(f"/leaderboard/{name}" for name in exports), "/api/v1/leaderboards/track-9"):
        assert client.get(address).status_code == 404, address
    assert client.get(f"/teams/{Team.objects.get().slug}/").text.count("Next year") == 0


def test_a_draft_whose_rules_change_after_the_test_is_tested_again(
    client: Client, organizer: User, worker: None
) -> None:
    track = begin_test(client)
    finish_test(track)
    fill(client, "weights", reference="vt5-tiny", test_set="secret", trainable="decoder.*")
    assert "The rules have changed since the test." in client.get(SETUP).text
    client.post(f"{SETUP}publish/", CONFIRMED)
    assert not Track.objects.exists()


def test_errors_of_a_draft_say_what_is_valid(client: Client, organizer: User) -> None:
    begin(client)
    page = client.post(f"{SETUP}kind/", {"anls_threshold": "2"}).text
    assert "Enter a number from 0 to 1." in page
    page = client.post(f"{SETUP}data/", {"add": "1", "sha256": "abc"}).text
    assert "Enter 64 hexadecimal digits in lower case." in page
    phase = {"phases-TOTAL_FORMS": "1", "phases-INITIAL_FORMS": "0", "phases-0-submissions_per_day": "0"}
    assert "Enter at least 1." in client.post(f"{SETUP}phases/", {**phase, "phases-0-name": "First"}).text


def test_a_worker_that_read_other_weights_than_it_reports_is_not_believed(
    client: Client, organizer: User, worker: None
) -> None:
    track = begin_test(client)
    run = rehearsal_of(track)
    assert run is not None
    other = ValidationResult(tensors=2, parameters=10, sha256="c" * 64, changed=[])
    receive_report(make_report(run.evaluations.get(), Step.VALIDATE, result=other))
    assert "the worker read a checkpoint of SHA-256" in client.get(SETUP).text


def test_weights_are_chosen_among_what_workers_report(client: Client, organizer: User) -> None:
    begin(client)
    page = client.get(f"{SETUP}weights/").text
    assert "No worker has reported base weights or a test set in the last ten minutes" in page
    assert "Start a worker</a> that has base weights and a test set" in page
    missing = client.get(SETUP).text
    for name in ("Base weights", "Test set"):
        assert f"{name}</label>" in page
        assert f"{name}: Not chosen; no worker reports any." in missing
    receive(Inventory(worker="one", references={}))
    page = client.get(f"{SETUP}weights/").text
    assert "1 worker has reported in the last ten minutes, but no base weights and no test set." in page
    receive(Inventory(worker="one", references={"vt5-tiny": WEIGHTS}))
    page = client.get(f"{SETUP}weights/").text
    assert "1 worker has reported in the last ten minutes, but no test set." in page
    receive(Inventory(worker="one", references={"vt5-tiny": WEIGHTS}, test_sets={"secret": TEST_SET}))
    receive(Inventory(worker="two", references={"vt5-tiny": "c" * 64}))
    page = client.get(f"{SETUP}weights/").text
    assert "vt5-tiny: on 2 workers, contents differ between workers" in page
    assert f"secret: on 1 worker, SHA-256 {TEST_SET[:12]}…" in page
    # One that is gone isn't counted.
    StoredInventory.objects.filter(worker="two").update(seen_at=timezone.now() - timedelta(minutes=3))
    assert "vt5-tiny: on 1 worker, contents differ" in client.get(f"{SETUP}weights/").text
    # Chosen where there is a choice.
    assert "This field is required." in client.post(f"{SETUP}weights/", {"reference": "vt5-tiny"}).text
    invented = {"reference": "invented", "test_set": "secret"}
    assert client.post(f"{SETUP}weights/", invented).status_code == 200


def test_what_is_trainable_is_saved_before_any_worker_reports(client: Client, organizer: User) -> None:
    track = begin(client)
    fill(client, "weights", reference="", test_set="", trainable="lora_*")
    track.refresh_from_db()
    assert (track.trainable, track.reference, track.test_set) == ("lora_*", "", "")


def test_a_leakage_set_is_chosen_among_the_splits_that_workers_report(
    client: Client, organizer: User, worker: None
) -> None:
    track = begin(client)
    chosen = {"reference": "vt5-tiny", "test_set": "secret", "leakage": "train/red"}
    assert client.post(f"{SETUP}weights/", chosen).status_code == 200
    receive(
        Inventory(
            worker="gpu",
            references={"vt5-tiny": WEIGHTS},
            test_sets={"secret": TEST_SET},
            leakage_sets={"train/red": "d" * 64},
        )
    )
    fill(client, "weights", **chosen)
    track.refresh_from_db()
    assert (track.leakage_set, track.leakage_split) == ("train", "red")
    # The split is recorded with its set, also where it is the default.
    changes = AuditEntry.objects.filter(action="track.changed").latest("pk").details["changes"]
    assert (changes["leakage_set"], changes["leakage_split"]) == (["", "train"], ["red", "red"])
    assert "train/red, on 1 worker, SHA-256 dddd" in client.get(SETUP).text
    receive(Inventory(worker="gpu", references={"vt5-tiny": WEIGHTS}, test_sets={"secret": TEST_SET}))
    assert "train/red: on no worker" in client.get(f"{SETUP}weights/").text
    assert "<li>Leakage set: No worker has train/red.</li>" in client.get(SETUP).text
    page = client.post(f"{SETUP}test/", follow=True).text
    assert "The track can&#x27;t be tested yet. Leakage set: No worker has train/red." in page
    assert rehearsal_of(track) is None
    Track.with_drafts.update(is_draft=False)
    assert "Next year: leakage can&#x27;t be measured" in client.get("/organize/").text
    Track.with_drafts.update(is_draft=True)
    fill(client, "weights", **{**chosen, "leakage": ""})
    track.refresh_from_db()
    assert track.measured_leakage_set() is None


def test_a_phase_that_has_ended_is_rejected_where_it_is_entered(client: Client, organizer: User) -> None:
    track = begin(client)
    ended = {**PHASE, "phases-0-id": track.phases.get().pk, "phases-0-ends_at": "2020-01-01T12:00"}
    page = client.post(f"{SETUP}phases/", ended).text
    assert "This time has passed" in page
    assert track.phases.get().ends_at is None


@pytest.mark.usefixtures("organizer")
@pytest.mark.parametrize("ranking", RANKINGS)
def test_the_rules_are_in_groups_the_rare_ones_folded(client: Client, ranking: str) -> None:
    track = begin(client, ranking)
    page = client.get(f"{SETUP}kind/").text
    names = KindForm(instance=track).fields
    assert [name for name in names if page.count(f' name="{name}"') == 0] == []
    folded = page.index('<details class="card stack">')
    assert page.index(' name="clients"') < folded < page.index(' name="challenges_per_day"')
    page = client.post(f"{SETUP}kind/", {"challenges_per_day": "many"}).text
    assert '<details class="card stack" open>' in page


def test_the_form_of_a_list_of_numbers_is_said(client: Client, organizer: User) -> None:
    track = begin(client, BEST_ANLS_AT_BUDGET.key)
    page = client.post(f"{SETUP}data/", {"providers_per_client": "3, x, 5"}).text
    assert "Enter numbers separated by commas, such as 1, 4, 8." in page
    assert 'value="3, x, 5"' in page
    assert "such as 420, 398." in page
    Track.with_drafts.update(clients=3)
    fill(client, "data", providers_per_client="3 4 5")
    track.refresh_from_db()
    assert track.providers_per_client == [3, 4, 5]


def test_numbers_are_written_as_people_write_them(client: Client, organizer: User) -> None:
    track = begin(client, BEST_ANLS_AT_BUDGET.key)
    page = client.get(f"{SETUP}kind/")
    assert 'value="1, 4, 8"' in page.text
    # A list would cut the long choices off.
    assert '<select name="sampling_rule"' not in page.text
    assert "Only for tracks" not in page.text
    values = {field.name: field.value() or "" for field in page.context["form"]}
    fill(client, "kind", **{**values, "budgets": "2, 0.5"})
    track.refresh_from_db()
    assert track.budgets == [2, 0.5]


def test_the_list_says_which_step_a_private_track_is_published_without(
    client: Client, organizer: User, worker: None
) -> None:
    begin(client, BEST_ANLS_AT_BUDGET.key)
    client.post(NEW, {"name": "Bytes", "slug": "track-8", "ranking": FEWEST_BYTES.key})
    assert "submit --practice" not in client.get("/organize/tracks/track-8/setup/").text
    page = client.get(SETUP).text
    assert "The test doesn&#x27;t recompute ε" in page
    assert "not tested" in page


def test_impossible_rules_are_explained_and_not_saved(client: Client, organizer: User, worker: None) -> None:
    track = begin(client, BEST_ANLS_AT_BUDGET.key)
    assert "less than or equal to 0.001" in client.post(f"{SETUP}kind/", {"delta": "2"}).text
    answer = client.post(f"{SETUP}weights/", {"reference": "vt5-tiny", "trainable": "two words"})
    assert "contain spaces, quotes or non-ASCII" in answer.text
    track.refresh_from_db()
    assert (track.reference, track.delta) == ("", 1e-5)


def test_a_pattern_that_matches_no_tensor_is_rejected(
    client: Client, organizer: User, worker: None, settings: Any, tmp_path: Path
) -> None:
    track = begin(client)
    chosen = {"reference": "vt5-tiny", "test_set": "secret"}
    settings.REFERENCES_FOLDER = tmp_path
    fill(client, "weights", **chosen, trainable="lm_head.*")
    assert "so it can&#x27;t say which tensors match" in client.get(SETUP).text
    (tmp_path / "vt5-tiny").mkdir()
    (tmp_path / "vt5-tiny" / WEIGHTS_FILE).write_bytes(checkpoint())
    assert "lm_head.* matches no tensor." in client.get(SETUP).text
    answer = client.post(f"{SETUP}weights/", {**chosen, "trainable": "x\nlm_head.*"})
    assert "No tensor of vt5-tiny matches lm_head.*." in answer.text
    fill(client, "weights", **chosen, trainable="?")
    assert "? matches 1 tensor." in client.get(SETUP).text
    Track.with_drafts.filter(pk=track.pk).update(is_draft=False)
    answer = client.post("/organize/tracks/track-9/rules/", {**chosen, "trainable": "lm_head.*"})
    assert "No tensor of vt5-tiny matches lm_head.*." in answer.text


def test_a_text_is_previewed_and_not_saved(client: Client, organizer: User) -> None:
    begin(client)
    data = {"summary": "S.", "description": "**Bold**", "preview": "1"}
    assert "<strong>Bold</strong>" in client.post(f"{SETUP}texts/", data).text
    assert Track.with_drafts.get().description == ""


def test_downloads_are_uploaded_or_linked_with_new_terms_and_public_with_the_track(
    client: Client, organizer: User
) -> None:
    track = begin(client)
    fields = {"kind": "data", "license": "CC-BY-4.0", "add": "1"}
    terms = {"terms_title": "Agreement", "terms_version": "1", "terms_text": "Be *kind*."}
    file = SimpleUploadedFile("train.zip", b"zip")
    fill(client, "data", **fields, title="Training data", file=file, **terms)
    fill(client, "data", **fields, title="Weights", link="https://example.org/w/base.zip", sha256="d" * 64)
    assert client.post(f"{SETUP}data/", {**fields, "title": "Nothing"}).status_code == 200
    upload, link = Download.objects.order_by("slug")
    assert (upload.filename, link.filename) == ("train.zip", "base.zip")
    assert "Training data" not in client.get("/data/").text
    assert client.get("/api/v1/downloads").json() == []
    assert client.get(link.get_absolute_url()).status_code == 404
    Track.with_drafts.filter(pk=track.pk).update(is_draft=False)
    assert "example.org" in client.get("/data/").text
    other = make_track()
    offered = client.get("/api/v1/downloads?track=track-9").json()
    assert [(row["filename"], row["tracks"]) for row in offered] == [
        ("train.zip", ["track-9"]),
        ("base.zip", ["track-9"]),
    ]
    assert client.get(f"/api/v1/downloads?track={other.slug}").json() == []
    assert client.get(link.get_absolute_url())["Location"] == "https://example.org/w/base.zip"
    assert "/data/terms/" in client.get(upload.get_absolute_url())["Location"]


def test_a_download_of_all_tracks_is_not_taken_from_the_others(client: Client, organizer: User) -> None:
    common = make_download(DownloadKind.DATA)
    begin(client)
    assert "No download is for single tracks yet." in client.get(f"{SETUP}data/").text
    assert f"Offered for all tracks, this one included: {common}." in client.get(f"{SETUP}data/").text
    assert client.post(f"{SETUP}data/", {"downloads": [common.pk]}).status_code == 200
    assert not common.tracks(manager="with_drafts").exists()


def test_a_public_track_gets_and_replaces_downloads_which_its_page_lists(
    client: Client, organizer: User
) -> None:
    track = make_track(slug="track-9")
    shared = make_download(DownloadKind.DATA, title="Shared")
    shared.tracks.set([track, make_track(slug="other")])
    assert f'href="{SETUP}data/"' in client.get("/organize/tracks/track-9/").text
    page = client.get(f"{SETUP}data/").text
    assert "Save and go back" not in page
    assert "Providers per client" not in page
    fields = {"kind": "data", "license": "CC-BY-4.0", "add": "1", "title": "Training data"}
    fill(client, "data", **fields, file=SimpleUploadedFile("train.zip", b"zip"))
    first = Download.objects.get(slug="training-data")
    assert f"Downloads: “Training data” added; SHA-256 {first.sha256}." in client.get("/tracks/track-9/").text
    again = client.post(f"{SETUP}data/", {**fields, "link": "https://example.org/a.zip"}).text
    assert "To replace it, choose it above." in again
    assert f'<option value="{shared.pk}"' not in again
    file = SimpleUploadedFile("fixed.zip", b"fixed")
    fill(client, "data", **fields, replaces=str(first.pk), file=file)
    second = Download.objects.get(pk=first.pk)
    assert (second.slug, second.filename) == ("training-data", "fixed.zip")
    offered = client.get(f"/api/v1/downloads?track={track.slug}").json()
    assert {row["filename"]: row["sha256"] for row in offered}["fixed.zip"] == second.sha256
    fill(client, "data", **fields, replaces=str(first.pk), link="https://example.org/a.zip")
    assert Download.objects.get(pk=first.pk).store_key == ""
    fill(client, "data", downloads=[str(shared.pk)])
    page = client.get("/tracks/track-9/").text
    assert "Downloads: “Training data” replaced." in page
    assert "Downloads: “Training data” removed." in page
    history = client.get("/organize/tracks/track-9/history/").text
    assert "added download Training data" in history
    assert history.count("replaced download Training data") == 2
    assert "Training data" not in client.get("/data/").text


def test_a_download_that_a_draft_gives_up_does_not_become_public(client: Client, organizer: User) -> None:
    begin(client)
    link = {
        "kind": "data",
        "license": "CC0-1.0",
        "add": "1",
        "title": "Secret",
        "link": "https://example.org/a.zip",
    }
    fill(client, "data", **link)
    fill(client, "data", save="1")
    client.post(f"{SETUP}discard/")
    assert not Track.with_drafts.exists()
    assert "Secret" not in Client().get("/data/").text


def test_a_copy_takes_over_rules_texts_and_phases(client: Client, organizer: User) -> None:
    source = make_track(BEST_ANLS_AT_BUDGET, budgets=[2.0], closes_at=timezone.now())
    track = begin(client, BEST_ANLS_AT_BUDGET.key, source=str(source.pk))
    assert (track.budgets, track.description, track.is_draft) == ([2.0], source.description, True)
    assert track.phases.get().ends_at == source.phases.get().ends_at
    assert source.phases.count() == 1
    other = {"name": "Other", "slug": "other", "ranking": FEWEST_BYTES.key, "source": source.pk}
    assert "is a track of another kind. Rewrite its rules text" in client.post(NEW, other, follow=True).text


def test_a_rules_text_of_a_track_of_another_kind_is_not_ready(client: Client, organizer: User) -> None:
    source = make_track(
        BEST_ANLS_AT_BUDGET, slug="private", name="Private", description="# Rules\n\nStay below ε."
    )
    begin(client, source=str(source.pk))
    fill(client, "texts", summary="Fewer bytes.", description="# Rules\r\n\r\nStay below ε.")
    page = client.get(SETUP).text
    assert "The rules text is that of Private, a track of another kind." in page
    assert "texts" not in page.partition("Still missing:")[2].partition("</p>")[0]
    fill(client, "texts", summary="Fewer bytes.", description="# Rules\n\nSend fewer bytes.")
    assert "Written." in client.get(SETUP).text
    copy = {"name": "Copy", "slug": "copy", "ranking": BEST_ANLS_AT_BUDGET.key, "source": source.pk}
    client.post(NEW, copy)
    fields = {"summary": "Private, again.", "description": source.description}
    client.post("/organize/tracks/copy/setup/texts/", fields)
    assert "Written." in client.get("/organize/tracks/copy/setup/").text


def test_the_list_names_the_downloads_that_participants_miss(
    client: Client, organizer: User, settings: Any
) -> None:
    track = begin(client)
    assert "0 for all tracks. Missing: data, base weights and starter kit." in client.get(SETUP).text
    make_download(DownloadKind.DATA).tracks.add(track)
    make_download(DownloadKind.WEIGHTS).tracks.add(make_track(slug="other"))
    assert "1 for this track, 0 for all tracks. Missing: base weights and" in client.get(SETUP).text
    make_download(DownloadKind.WEIGHTS)
    assert "Missing: starter kit." in client.get(SETUP).text
    # It is installed from there.
    settings.SOURCE_URL = "https://example.org/source"
    assert "1 for this track, 1 for all tracks.</td>" in client.get(SETUP).text


def test_an_address_is_made_from_the_name(client: Client, organizer: User) -> None:
    data = {"name": "Next year's bytes", "slug": "", "ranking": FEWEST_BYTES.key}
    assert client.post(NEW, data)["Location"] == "/organize/tracks/next-years-bytes/setup/kind/"
    assert "Enter an address." in client.post(NEW, {**data, "name": "…"}).text


def test_addresses_are_taken_once(client: Client, organizer: User) -> None:
    begin(client)
    for slug in ("track-9", "new"):
        data = {"name": "Other", "slug": slug, "ranking": FEWEST_BYTES.key}
        assert "This address is taken." in client.post(NEW, data).text


def test_phases_that_overlap_are_not_saved(client: Client, organizer: User) -> None:
    track = begin(client)
    phase = track.phases.get()
    both = {**PHASE, "phases-0-id": phase.pk, "phases-0-track": track.pk, "phases-1-name": "Final"}
    page = client.post(f"{SETUP}phases/", both).text
    assert "overlap" in page
    assert 'open><summary id="another">' in page
    assert track.phases.count() == 1


def test_all_phases_are_named_before_publication(client: Client, organizer: User) -> None:
    track = begin(client)
    track.phases.update(ends_at=timezone.now() + timedelta(days=1))
    Phase.objects.create(track=track, name="Final", starts_at=timezone.now() + timedelta(days=2))
    page = client.get(SETUP).text
    first, final = track.phases.order_by("ends_at")
    assert f"“Submissions”: until {in_words(first.ends_at)}, 5 submissions per team in 24 hours, no" in page
    assert f"“Final”: from {in_words(final.starts_at)}, no deadline, 5 submissions" in page
    assert "Open as soon as the track is published." in page
    track.phases.filter(pk=final.pk).update(examined_ranks=3)
    assert "first 3 ranks: " in client.get(SETUP).text
    missing = re.findall(
        r"\d\. ([^<]+)</a> <span class=\"badge badge-draft\">not ready", client.get(SETUP).text
    )
    assert missing == ["Texts", "Base weights and test set"]
    assert 'Data and downloads</a> <span class="badge badge-draft">recommended' in client.get(SETUP).text


def test_invited_people_review_or_organize_this_track_alone(client: Client, organizer: User) -> None:
    track = begin(client)
    # Only superusers give rights.
    client.post(f"{SETUP}people/", {"invite": "1", "email": "reviewer@example.org", "role": "reviewer"})
    assert not mail.outbox
    User.objects.filter(pk=organizer.pk).update(is_superuser=True)
    for role in ("reviewer", "organizer"):
        email = f"{role}@example.org"
        fill(client, "people", invite="1", email=email, role=role)
        text = str(mail.outbox[-1].body)
        assert role != "organizer" or f"an organizer of the track “{track}”" in text
        secret = re.search(r"/organize/invitations/([^/\s]+)/", text)
        assert secret is not None
        # Without a session, the page names the invitation, and leads back to itself.
        page = Client().get(secret[0]).text
        title = "Review privacy proofs?" if role == "reviewer" else f"Organize {track}?"
        assert f"<h1>{title}" in page
        assert f'href="{reverse("account_login")}?next={secret[0].replace("/", "%2F")}"' in page
        assert email not in page
        stranger = _logged_in(make_user())
        assert stranger.post(secret[0]).status_code == 403
        person = make_user(email)
        vouch_for_address(person)
        page = _logged_in(person).post(secret[0], follow=True).text
        place = {"reviewer": "the queue of proof reviews", "organizer": "the organizers&#x27; desk"}[role]
        assert f"Set up a second factor to open {place}." in page
        assert _logged_in(make_user()).get(secret[0]).status_code == 404
    fill(client, "people", invite="1", email="late@example.org", role="reviewer")
    assert "late@example.org, reviewer" in client.get(f"{SETUP}people/").text
    other = make_track(name="Other")
    client.post(
        f"/organize/tracks/{other.slug}/setup/people/",
        {"invite": "1", "email": "one@example.org", "role": "organizer"},
    )
    assert "late@example.org" in client.get(f"/organize/tracks/{other.slug}/setup/people/").text
    assert "one@example.org" not in client.get(f"{SETUP}people/").text
    assert '<a href="/organize/people/">2 pending invitations</a>' in client.get("/organize/").text
    page = client.get("/organize/people/").text
    assert "late@example.org, reviewer" in page
    assert "one@example.org, organizer of “Other” alone" in page
    assert re.search(rf"{track}</a><ul>\s*<li>.*{User.objects.get(email='organizer@example.org')}</a>", page)
    assert 'Track <span class="optional">(required for an organizer of one track alone)</span>' in page
    assert "(optional)" not in page
    invited = {"email": "rita@example.org", "role": "organizer"}
    assert "Choose a track." in client.post("/organize/people/", invited).text
    assert "rita@" not in str(mail.outbox[-1].to)
    client.post("/organize/people/", {**invited, "track": track.pk})
    client.post("/organize/people/", {**invited, "role": "reviewer", "track": track.pk})
    page = client.get("/organize/people/").text
    assert f"rita@example.org, organizer of “{track}” alone" in page
    assert "rita@example.org, reviewer of privacy proofs" in page
    assert {one.track for one in StaffInvitation.objects.filter(email="rita@example.org")} == {track, other}
    User.objects.filter(pk=organizer.pk).update(is_superuser=False)
    assert "Invite somebody" not in client.get("/organize/people/").text
    assert client.post("/organize/people/", {**invited, "track": track.pk}).status_code == 403
    User.objects.filter(pk=organizer.pk).update(is_superuser=True)
    StaffInvitation.objects.filter(email__in=["one@example.org", "rita@example.org"]).delete()
    open_one = StaffInvitation.objects.get(accepted_at=None)
    client.post(f"/organize/people/invitations/{open_one.pk}/withdraw/?from={track.slug}")
    assert "was withdrawn" in client.get(f"{SETUP}people/").text
    assert "example.org" not in client.get(f"{SETUP}people/").text
    # Also once the track is public.
    Track.with_drafts.update(is_draft=False)
    assert "organizer of this track" in client.get(f"{SETUP}people/").text
    assert client.get(f"{SETUP}kind/").status_code == 404
    client.post(f"{SETUP}people/", {"registration": "approval"})
    track.refresh_from_db()
    assert track.registration == "none"
    assert not StaffInvitation.objects.filter(accepted_at=None).exists()
    reviewer, second = (User.objects.get(email=f"{role}@example.org") for role in ("reviewer", "organizer"))
    assert reviewer.is_staff
    assert reviewer.groups.filter(name="Reviewers").exists()
    assert not is_reviewer(reviewer)  # without a second factor
    assert second.organizes_single_tracks
    assert list(track.organizers.all()) == [second]


def test_the_first_step_names_the_kind_and_takes_sizes_with_their_unit(
    client: Client, organizer: User
) -> None:
    assert "It can't be changed later" in client.get("/organize/tracks/new/").text
    track = begin(client)
    page = client.get(f"{SETUP}kind/").text
    assert f"<strong>Kind: {track.kind.label}.</strong>" in page
    assert "discard the draft</a>" in page
    assert 'name="max_checkpoint_bytes" value="2 GiB"' in page
    values = {
        name: value for name, value in model_to_dict(track, KindForm(instance=track).fields).items() if value
    }
    for written, size in (("1.5 GB", 1_500_000_000), ("500mb", 500_000_000), ("3221225472", 3 * 1024**3)):
        fill(client, "kind", **{**values, "max_checkpoint_bytes": written})
        track.refresh_from_db()
        assert track.max_checkpoint_bytes == size
    for written in ("2 miles", "1.0001 kB", "many"):
        assert "such as 2 GB" in client.post(f"{SETUP}kind/", {"max_checkpoint_bytes": written}).text


def test_who_invites_somebody_who_competes_is_warned(client: Client) -> None:
    sign_in_organizer(client, is_superuser=True)
    other, person = make_track(name="Other"), make_user("ada@example.org")
    make_submission(make_team(person), other, state=SubmissionState.SUBMITTED)
    begin(client)
    warning = "A team of ada@example.org has submissions in Other."
    data = {"invite": "1", "email": "ADA@example.org"}
    assert warning in client.post(f"{SETUP}people/", {**data, "role": "reviewer"}, follow=True).text
    assert warning in client.post(f"{SETUP}people/", {**data, "role": "all_tracks"}, follow=True).text
    assert warning not in client.post(f"{SETUP}people/", {**data, "role": "organizer"}, follow=True).text


def test_who_has_the_role_already_is_not_invited_to_it(client: Client) -> None:
    sign_in_organizer(client, is_superuser=True)
    track, other = begin(client), make_track(name="Other")
    ada, ben, olga = (
        make_user(f"{name}@example.org", name=name, is_staff=True) for name in ("Ada", "Ben", "Olga")
    )
    make_reviewer(ada)
    make_track_organizer(ben)
    track.organizers.add(ben)
    make_organizer_of_all(olga)
    for email, role, said in (
        ("ADA@example.org", "reviewer", "Ada is already a reviewer of privacy proofs, in every track."),
        ("ben@example.org", "organizer", f"Ben is already an organizer of the track “{track}”."),
        ("olga@example.org", "all_tracks", "Olga is already an organizer of all tracks."),
    ):
        data = {"invite": "1", "email": email, "role": role, "track": track.pk}
        for address in (f"{SETUP}people/", "/organize/people/"):
            page = client.post(address, data, follow=True).text
            assert said in page
            assert "sent an invitation" not in page
    assert not StaffInvitation.objects.exists()
    invited = {"email": "ben@example.org", "role": "organizer", "track": other.pk}
    assert "sent an invitation" in client.post("/organize/people/", invited, follow=True).text
    again = client.post("/organize/people/", {**invited, "email": "Ben@example.org"}, follow=True).text
    assert "The link in the earlier one no longer works." in again[: again.index("Pending invitations")]
    assert StaffInvitation.objects.count() == 1


def test_an_organizer_of_all_tracks_is_invited(client: Client) -> None:
    inviter = sign_in_organizer(client, name="Olga Person", is_superuser=True)
    begin(client)
    fill(client, "people", invite="1", email="new@example.org", role="all_tracks")
    text = str(mail.outbox[-1].body)
    assert f"Olga Person ({inviter.email}) has invited you" in text
    assert "as an organizer of all tracks" in text
    found = re.search(r"/organize/invitations/[^/\s]+/", text)
    assert found
    invited = make_user("new@example.org")
    vouch_for_address(invited)
    make_track_organizer(invited)
    page = _logged_in(invited).get(found[0]).text
    assert f"Olga Person ({inviter.email}) has invited you to join as an organizer of all tracks" in page
    assert "you set it up next" in page
    second = sign_in_organizer(other := Client(), "review_proofs")
    vouch_for_address(second)
    client.post(f"{SETUP}people/", {"invite": "1", "email": second.email, "role": "all_tracks"})
    link = re.search(r"/organize/invitations/[^/\s]+/", str(mail.outbox[-1].body))
    assert link
    assert "you set it up next" not in other.get(link[0]).text
    _logged_in(invited).post(found[0])
    invited = User.objects.get(pk=invited.pk)
    assert invited.is_staff
    assert [group.name for group in invited.groups.all()] == ["Organizers"]
    assert not invited.organizes_single_tracks
    subject = Notification.objects.get(user=inviter).subject
    assert subject == f"{invited} has accepted your invitation"


def test_who_has_a_role_is_removed_where_others_are_invited(client: Client) -> None:
    root = make_user("root@example.org", "a long password", is_staff=True, is_superuser=True)
    vouch_for_address(root)
    client.force_login(root)
    track = make_track(name="Alone")
    ben = make_user("ben@example.org", name="Ben Person", second_factor=False)
    olga = make_user(name="Olga Person", second_factor=True)
    rita = make_user("rita@example.org", name="Rita Person", second_factor=True)
    make_reviewer(ben)
    User.objects.filter(pk=ben.pk).update(is_staff=True)
    make_organizer_of_all(olga)
    make_track_organizer(rita)
    track.organizers.add(rita)
    page = client.get("/organize/people/").text
    assert "ben@example.org" in page
    assert page.count("second factor not set up yet") == 1
    end = f"/organize/people/reviewer/{ben.pk}/remove/"
    assert f'action="{end}"' in page
    assert "open assignments" not in page
    ProofReview.objects.create(
        submission=make_submission(track=track), reviewer=ben, assigned_at=timezone.now()
    )
    assert "Their open assignments no longer count" in client.get("/organize/people/").text
    assert f"all_tracks/{root.pk}/" not in page
    assert client.post(f"/organize/people/all_tracks/{root.pk}/remove/").status_code == 404
    assert client.post(f"/organize/people/organizer/{rita.pk}/remove/").status_code == 404
    # Rights are taken by whoever gives a password and a code again.
    asked = client.post(end)["Location"]
    assert ben.groups.exists()
    asked = client.post(asked, {"password": "a long password"})["Location"]
    done = client.post(asked, {"code": code_of()}, follow=True)
    assert "Ben Person is no longer a reviewer." in done.text
    ben.refresh_from_db()
    assert not ben.is_staff
    assert not ben.groups.exists()
    entry = AuditEntry.objects.latest("pk")
    assert (entry.action, entry.details["role"]) == ("staff.removed", "reviewer")
    client.post(f"/organize/people/all_tracks/{olga.pk}/remove/")
    assert not olga.groups.exists()
    remove = f"/organize/tracks/{track.slug}/organizers/{rita.pk}/remove/?from=people"
    assert f'action="{remove}"' in page
    assert client.post(remove)["Location"] == "/organize/people/"
    client.force_login(make_organizer("organize", "change_track"))
    assert "ben@example.org" not in client.get("/organize/people/").text
    assert client.post(end).status_code == 403


def test_a_pending_invitation_is_sent_again(client: Client) -> None:
    sign_in_organizer(client, is_superuser=True)
    track, second = make_track(), make_track()
    client.post("/organize/people/", {"email": "ben@example.org", "role": "reviewer", "track": track.pk})
    first = StaffInvitation.objects.get()
    again = f"/organize/people/invitations/{first.pk}/resend/?from="
    assert f'action="{again}people"' in client.get("/organize/people/").text
    client.post(f"{again}people")
    page = f"/organize/tracks/{second.slug}/setup/people/"
    client.post(page, {"invite": "1", "email": "ben@example.org", "role": "reviewer"})
    # One in every track replaces the one before, whichever track they are kept with.
    assert StaffInvitation.objects.get().track == second
    assert len(mail.outbox) == 3
    assert client.post(f"{again}people").status_code == 404
    left = StaffInvitation.objects.get()
    back = client.post(f"/organize/people/invitations/{left.pk}/resend/?from={second.slug}")["Location"]
    assert back == page


def test_an_organizer_of_all_tracks_is_restricted_to_one_only_without_the_wider_right(client: Client) -> None:
    sign_in_organizer(client, name="Olga Person", is_superuser=True)
    begin(client)
    otto = make_user("otto@example.org", name="Otto Person")
    make_organizer_of_all(otto)
    page = client.get(f"{SETUP}people/").text
    assert re.search(r"Olga Person</a>, organizer of all tracks \(superuser\)", page)
    assert "Otto Person</a>, organizer of all tracks<" in page
    invited = {"invite": "1", "email": "Otto@example.org", "role": "organizer"}
    assert (
        "Otto Person organizes all tracks, and would keep doing so"
        in client.post(f"{SETUP}people/", invited).text
    )
    assert not mail.outbox
    otto.groups.clear()
    fill(client, "people", **invited)
    assert len(mail.outbox) == 1
    assert "Otto Person" not in client.get(f"{SETUP}people/").text


def test_every_page_of_the_setup_is_sound(client: Client, organizer: User, worker: None) -> None:
    check(client, NEW)
    begin(client, BEST_ANLS_AT_BUDGET.key)
    for page in ("", "kind/", "texts/", "weights/", "data/", "phases/", "people/", "preview/"):
        check(client, f"{SETUP}{page}")


def test_a_public_track_that_no_worker_can_evaluate_is_a_fault_on_the_desk(
    client: Client, organizer: User
) -> None:
    make_track(name="Bytes", reference="vt5-tiny", test_set="secret")
    page = client.get("/organize/").text
    assert "Bytes can&#x27;t be evaluated" in page
    assert "the base weights vt5-tiny or the test set secret" in page
    assert 'id="tracklacksfiles"' in client.get("/docs/operations/").text
    receive(Inventory(worker="gpu", references={"vt5-tiny": WEIGHTS}, test_sets={"secret": TEST_SET}))
    assert "be evaluated" not in client.get("/organize/").text


def _logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client
