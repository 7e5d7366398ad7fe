"""The desk changes the texts of a track and what its evaluator applies: with a preview and a public note."""

import re

import pytest
from django.forms.models import model_to_dict
from django.test import Client

from docvqa_site.accounts.services import make_track_organizer
from docvqa_site.audit.models import AuditEntry
from docvqa_site.challenge.models import RuleChange, Track
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.evaluation.inventories import receive
from docvqa_site.organizers.forms import RulesForm
from docvqa_site.submissions.models import RunState, SubmissionState
from evaluator.messages.inventories import Inventory
from evaluator.messages.jobs import ArtifactKind, FirstDownload
from tests.docvqa_site.factories import (
    make_artifact,
    make_organizer,
    make_run,
    make_submission,
    make_team,
    make_token,
    make_track,
    sign_in_organizer,
)

pytestmark = pytest.mark.django_db

PAGE = "/organize/tracks/track/rules/"


@pytest.fixture
def track():
    receive(Inventory(worker="gpu", references={"vt5-new": "a" * 64}, test_sets={"new": "b" * 64}))
    track = make_track(
        BEST_ANLS_AT_BUDGET, slug="track", budgets=[4], description="# Rules\n\nTrain.\n\nSubmit."
    )
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED)
    make_run(submission, state=RunState.SCORED, budget=4.0, epsilon=3.9)
    make_artifact(make_run(make_submission(track=track), budget=4.0), ArtifactKind.CHECKPOINT)
    make_token(make_team(), track)
    return track


def fields(track: Track, **changed) -> dict[str, object]:
    """What a browser sends when nothing but this is changed: texts have other ends of lines then."""
    values = model_to_dict(track, RulesForm(instance=track).fields)
    values = {name: str(value).replace("\n", "\r\n") for name, value in values.items()}
    return {**values, "reason": "As announced.", **changed}


def confirmed(client: Client, data: dict[str, object]) -> str:
    """The preview; the change is made as well."""
    page = client.post(PAGE, data).text
    seen = re.search(r'name="seen" value="(\w+)"', page).group(1)
    assert client.post(PAGE, {**data, "seen": seen}).status_code == 302
    return page


def test_registration_is_changed_with_a_preview_a_note_and_a_notice(client: Client, organizer, track) -> None:
    page = confirmed(client, fields(track, registration="approval", registration_questions="Who are you?"))
    assert (
        "1 team with a draft can&#x27;t submit it, or get a run token, until the team registers and" in page
    )
    assert "1 person whose team" not in page
    assert "are notified" in page
    shown = client.get("/tracks/track/").text
    assert "Before a team may submit: teams submit without registering → teams register, and an" in shown
    assert "Registration questions: 1 line added." in shown
    page = confirmed(client, fields(track, registration="none"))
    track.refresh_from_db()
    assert (track.registration, track.registration_questions) == ("none", "")


def test_code_and_leakage_are_changed_with_a_preview(client: Client, organizer, track) -> None:
    receive(Inventory(worker="gpu", leakage_sets={"train/blue": "d" * 64}))
    page = confirmed(client, fields(track, requires_code="on", leakage="train/blue"))
    assert "Drafts without a description and code can&#x27;t be submitted" in page
    assert "Runs that are scored from now on are measured by the new choice" in page
    shown = client.get("/tracks/track/").text
    for text in (
        "Description and code required: no → yes.",
        "Leakage set: none → train.",
        "set: red → blue.",
    ):
        assert text in shown
    track.refresh_from_db()
    assert track.requires_code
    assert (track.leakage_set, track.leakage_split) == ("train", "blue")
    assert 'value="train/blue" selected' in client.get(PAGE).text
    confirmed(client, fields(track))
    track.refresh_from_db()
    assert track.measured_leakage_set() is None


def test_an_organizer_of_a_single_track_edits_its_questions(client: Client, track) -> None:
    person = sign_in_organizer(client, "organize", "change_track")
    make_track_organizer(person)
    track.organizers.add(person)
    confirmed(client, fields(track, registration_questions="Who are you?"))
    track.refresh_from_db()
    assert track.questions == ["Who are you?"]


def test_a_preview_says_nothing_of_what_there_is_none_of(client: Client, organizer) -> None:
    track = make_track(BEST_ANLS_AT_BUDGET, slug="track")
    changed = {"registration": "approval", "delta": "1e-6", "challenges_per_day": "1"}
    page = client.post(PAGE, fields(track, **changed)).text
    assert "Effect of this change" in page
    assert not re.findall(r"<li>[^<]*\b0 [^<]*</li>", page)


def test_another_delta_says_what_it_means_and_is_noted_publicly(client: Client, organizer, track) -> None:
    page = confirmed(client, fields(track, delta="1e-6"))
    for sentence in (
        "δ: 10⁻⁵ → 10⁻⁶.",
        "1 scored run will keep the rules under which they were submitted",
        "Their ε stays on the boards, next to ε under the new rules.",
        "1 draft will be evaluated under the new rules; 1 already has files",
        "1 unused run token may belong to training runs under the old rules",
    ):
        assert sentence in page
    track.refresh_from_db()
    assert track.delta == 1e-6
    assert "δ: 10⁻⁵ → 10⁻⁶. As announced." in client.get("/tracks/track/").text
    assert AuditEntry.objects.get(action="track.changed").details["changes"] == {"delta": [1e-5, 1e-6]}


def test_another_rule_for_first_downloads_is_in_the_facts_and_the_rules_of_new_runs(
    client: Client, organizer, track
) -> None:
    assert ">First download</a></dt><dd>not counted, as in" in client.get("/tracks/track/").text
    page = confirmed(client, fields(track, first_download="counted"))
    assert "Their bytes stay on the boards, next to bytes under the new rule." in page
    track.refresh_from_db()
    assert track.rules(4.0).first_download is FirstDownload.COUNTED
    note = "First download: not counted, as in the published competition → counted, even if the log leaves it out."
    assert RuleChange.objects.get().text == note
    assert ">First download</a></dt><dd>counted, even if" in client.get("/tracks/track/").text
    assert client.get("/api/v1/leaderboards").json()[0]["first_download"] == "counted"


def test_base_weights_test_set_and_accountant_are_named_in_words(client: Client, organizer, track) -> None:
    changed = {"reference": "vt5-new", "test_set": "new", "accountant": "rdp", "submission_license": "MIT"}
    assert (
        "SPDX license identifier. Look it up"
        in client.post(PAGE, fields(track, submission_license="mine")).text
    )
    page = confirmed(client, fields(track, **changed))
    assert "Submissions keep the license that their teams accepted" in page
    assert "No run has been scored on new yet" in page
    assert "Every worker needs references/vt5-new" in page
    note = RuleChange.objects.get().text
    assert "Base weights: vt5-tiny → vt5-new." in note
    assert "Test set: synthetic → new." in note
    assert "License of submissions: none → MIT." in note
    assert "Accountant: PLD: privacy loss distributions → RDP: Rényi differential privacy." in note


def test_a_changed_rules_text_shows_the_lines_before_and_after_to_everyone(
    client: Client, organizer, track
) -> None:
    page = confirmed(client, fields(track, description="# Rules\r\n\r\nTrain <b>well</b>.\r\n\r\nSubmit."))
    assert "Nobody is notified, because only texts change." in page
    assert ">Rules text:\n # Rules\n \n-Train.\n+Train &lt;b&gt;well&lt;/b&gt;.\n" in page
    shown = client.get("/tracks/track/").text
    assert "Rules text: 1 line added, 1 line removed." in shown
    assert "-Train.\n+Train &lt;b&gt;well&lt;/b&gt;." in shown
    assert "-Submit." not in shown


def test_what_a_browser_sends_back_unchanged_changes_nothing(client: Client, organizer, track) -> None:
    page = client.post(PAGE, fields(track), follow=True)
    assert "Nothing would change." in page.text
    assert not RuleChange.objects.exists()


def test_impossible_rules_are_rejected_and_the_page_needs_its_permission(
    client: Client, organizer, track
) -> None:
    page = client.post(
        PAGE, fields(track, delta="2", trainable="two words", clients="3", providers_per_client="[1]")
    )
    assert "less than or equal to 0.001" in page.text
    assert "contain spaces, quotes or non-ASCII" in page.text
    assert "One number is expected for each of the 3 clients." in page.text
    assert "invented is not one of the available choices" in client.post(
        PAGE, fields(track, reference="invented")
    ).text.replace("&#x27;", "'")
    client.force_login(make_organizer("organize"))
    assert client.post(PAGE, fields(track, delta="1e-6")).status_code == 403
    assert not RuleChange.objects.exists()
