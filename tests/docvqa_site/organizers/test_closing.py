"""A phase is closed on one page: it says what is still open, then freezes, publishes and announces the results."""

import hashlib
import io
import re
import subprocess
import sys
import zipfile
from datetime import timedelta
from html import unescape
from io import StringIO

import pytest
from django.contrib.auth.models import Permission
from django.core import mail
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from docvqa_site.audit.models import AuditEntry
from docvqa_site.boards.models import FinalResults
from docvqa_site.challenge.models import Phase
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.liveness.models import Cause, Outage
from docvqa_site.notifications.models import Notification
from docvqa_site.organizers.closing import version_of, warnings
from docvqa_site.reviews.models import Decision, ProofReview, RunAppeal
from docvqa_site.submissions.models import RunState, SubmissionState
from docvqa_site.submissions.services import disqualify, mark_baseline
from tests.docvqa_site.factories import (
    change_results,
    make_organizer,
    make_phase,
    make_run,
    make_submission,
    make_track,
    make_user,
    owner_of,
    sign_in_organizer,
)

pytestmark = pytest.mark.django_db

FORM = {"title": "Autumn: final results", "slug": "autumn", "text": "**Thank you** all.", "confirmed": "on"}


@pytest.fixture
def organizer(client: Client):
    return sign_in_organizer(client, "organize", "change_track", "view_submission", "change_finalresults")


def ended_track(ranking="bytes", **fields):
    track = make_track(
        ranking, slug="track", anls_threshold=0.5, closes_at=timezone.now() - timedelta(hours=1), **fields
    )
    return track, track.phases.get()


def add(track, title, **fields):
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED, title=title)
    return make_run(submission, **{"state": RunState.SCORED, **fields})


def address(phase: Phase) -> str:
    return f"/organize/tracks/{phase.track.slug}/phases/{phase.pk}/close/"


def close(client: Client, phase: Phase, **changed):
    """Preview the publication, and confirm it; the answer is the form where it isn't filled in as it should be."""
    filled = {**FORM, **changed}
    shown = client.post(address(phase), {name: value for name, value in filled.items() if name != "seen"})
    seen = re.search(r'name="seen" value="([\w-]+)"', shown.text)
    return client.post(address(phase), {"seen": seen[1], **filled}, follow=True) if seen else shown


def test_the_page_names_what_is_in_the_way_and_offers_no_button(client: Client, organizer) -> None:
    track, phase = ended_track()
    phase.ends_at = timezone.now() + timedelta(days=1)
    phase.save()
    add(track, "Waiting", state=RunState.QUEUED)
    add(track, "Broken", state=RunState.FAILED)
    page = client.get(address(phase)).text
    assert "The phase ends on" in page
    assert re.search(r"not met</span> No run is being evaluated\s.*?Waiting of Team", page, re.DOTALL)
    assert re.search(
        r"not met</span> No run has failed because of a site error\s.*?Broken of", page, re.DOTALL
    )
    assert "Close the phase and publish" not in page
    client.post(address(phase), {**FORM, "seen": "0-0"})
    assert not FinalResults.objects.exists()


def test_closing_publishes_files_that_verify_a_citation_and_an_announcement(
    client: Client, organizer, tmp_path
) -> None:
    track, phase = ended_track()
    first, second = add(track, "Small", bytes_total=10), add(track, "Big", bytes_total=30)
    page = close(client, phase)
    assert page.redirect_chain == [("/results/autumn/", 302)]
    assert page.text.index("Small") < page.text.index("Big")
    assert "@misc{pfl-docvqa-autumn," in page.text

    with zipfile.ZipFile(io.BytesIO(client.get("/results/autumn/files/all.zip").content)) as files:
        files.extractall(tmp_path)
    command = [sys.executable, "-I", "-S", str(tmp_path / "autumn" / "verify.py")]
    assert subprocess.run(command, check=False, timeout=60).returncode == 0
    table = client.get("/results/autumn/files/track.csv").content
    assert hashlib.sha256(table).hexdigest() in page.text

    notified = set(Notification.objects.values_list("user", flat=True))
    assert notified == {owner_of(run.submission.team).pk for run in (first, second)}
    assert "/results/autumn/" in mail.outbox[0].body
    assert "<strong>Thank you</strong>" in client.get("/news/results-autumn/").text
    assert re.search(r'is published at <a href="[^"]+/results/autumn/"', client.get("/tracks/track/").text)
    assert "/results/autumn/" in client.get("/sitemap.xml").text
    assert AuditEntry.objects.get(action="phase.closed").actor == organizer

    first.disqualified_because = "Too late."
    first.save()
    assert client.get("/results/autumn/files/track.csv").content == table
    assert "Small" in client.get("/results/autumn/").text


def test_it_says_how_many_of_the_ranks_are_the_organizers_own(client: Client, organizer) -> None:
    track, phase = ended_track()
    first = add(track, "Small", bytes_total=10)
    add(track, "Big", bytes_total=30)
    assert "baseline" not in client.get(address(phase)).text
    mark_baseline(first.submission, True, organizer)
    assert "1 of these ranks is held by the organizers' baselines." in unescape(
        client.get(address(phase)).text
    )
    preview = unescape(client.post(address(phase), FORM).text)
    assert "1 of these ranks is held by the organizers' baselines." in preview


def test_a_preview_shows_the_announcement_and_all_rows_of_the_files_first(client: Client, organizer) -> None:
    track, phase = ended_track()
    add(track, "Small")
    add(track, "Weak", anls=0.4)
    disqualify(add(track, "Forged"), "Trained on the test set.", organizer)
    page = client.get(address(phase)).text
    assert "Close the phase and publish" not in page
    without = page[page.index("Without a rank") :]
    assert "below the threshold of 0.5000" in without
    assert "disqualified by the organizers: Trained on the test set." in without
    page = client.post(address(phase), FORM).text
    assert "<h3>Autumn: final results</h3>" in page
    assert f"The results of the phase “{phase}” of {track} are final." in unescape(page)
    assert "<strong>Thank you</strong> all." in page
    assert "<p>Thank you all.</p>" in page
    assert "3 people" in page
    assert "/results/autumn/" in page
    assert "Close the phase and publish the results" in page
    assert not FinalResults.objects.exists()
    assert not mail.outbox[1:], "but that of the disqualification"
    page = client.post(address(phase), {**FORM, "edit": "1"}).text
    assert "Close the phase and publish" not in page
    assert "**Thank you** all.</textarea>" in page


def test_nothing_is_published_unconfirmed_and_a_correction_is_folded_away(client: Client, organizer) -> None:
    _, phase = ended_track()
    unconfirmed = {key: value for key, value in FORM.items() if key != "confirmed"}
    assert "tick the box" in client.post(address(phase), {**unconfirmed, "seen": version_of(phase)}).text
    assert not FinalResults.objects.exists()
    assert "<details><summary>Publish a corrected version" not in client.get(address(phase)).text
    close(client, phase)
    assert FinalResults.objects.count() == 1
    page = client.get(address(phase)).text
    assert "<details><summary>Publish a corrected version</summary>" in page
    # Open for whoever has chosen to correct them.
    assert "<details open><summary>Publish a corrected" in client.get(f"{address(phase)}?correct=1").text
    assert "Close the phase and publish the results" not in page


def test_lost_time_that_nobody_made_up_for_is_named_before_closing(client: Client, organizer) -> None:
    _, phase = ended_track()
    lost = "The phase lost 30 min to outages."
    assert lost not in client.get(address(phase)).text
    ends = phase.ends_at - timedelta(minutes=30)
    Outage.objects.create(cause=Cause.PAUSED, starts_at=ends - timedelta(minutes=30), ends_at=ends)
    assert lost in client.get(address(phase)).text
    close(client, phase)
    assert lost not in client.get(address(phase)).text


def test_a_fresh_disqualification_that_may_be_appealed_is_named_and_blocks_nothing(
    client: Client, organizer
) -> None:
    track, phase = ended_track()
    fresh, appealed, lifted = add(track, "Fresh"), add(track, "Appealed"), add(track, "Lifted")
    for run in (fresh, appealed, lifted):
        disqualify(run, "Trained on the test set.", organizer)
    RunAppeal.objects.create(
        run=appealed, reason="Trained on the test set.", author=appealed.submission.created_by, text="No."
    )
    disqualify(lifted, "", organizer, lifted_because="A mistake.")
    hint = re.search(r"Disqualified in the last 14 days, [^<]*", client.get(address(phase)).text)
    assert hint
    assert "Fresh" in hint[0]
    assert "Appealed" not in hint[0]
    assert "Lifted" not in hint[0]
    assert not list(warnings(phase, timezone.now() + timedelta(days=15)))
    close(client, phase)
    assert FinalResults.objects.exists()


def test_boards_that_have_changed_since_are_shown_again(client: Client, organizer) -> None:
    track, phase = ended_track()
    add(track, "Small")
    page = close(client, phase, seen="0-other")
    assert "Something has changed in the meantime" in page.text
    assert not FinalResults.objects.exists()


def test_open_proof_reviews_and_missing_examinations_are_in_the_way(client: Client, organizer) -> None:
    track, phase = ended_track(BEST_ANLS_AT_BUDGET, budgets=[4], required_reviews=1, examined_ranks=1)
    run = add(track, "Private", budget=4.0, epsilon=3.9)
    page = client.get(address(phase)).text
    assert "not met</span> All proof reviews are settled" in page
    assert "not met</span> The top ranks have passed the required examinations" in page
    ProofReview.objects.create(
        submission=run.submission,
        reviewer=make_user(),
        decision=Decision.ACCEPTED,
        decided_at=timezone.now(),
    )
    change_results(run, trust_level=3)
    page = close(client, phase)
    assert page.redirect_chain[0][0] == "/results/autumn/"
    assert "ε = 4" in page.text


def test_a_change_of_rules_says_that_final_results_stay_as_they_are(client: Client, organizer) -> None:
    track, phase = ended_track()
    add(track, "Small")
    page = f"/organize/tracks/{track.slug}/"
    change = {"anls_threshold": 0.99, "reason": ""}
    said = "are published and stay as they are"
    before = client.post(page, change).text
    assert said not in before
    assert f"The phase “{phase}” is over: this changes what decides its ranks" in unescape(before)
    Phase.objects.filter(pk=phase.pk).update(ends_at=None)
    assert "is over: this changes" not in client.post(page, change).text
    phase.save()
    close(client, phase)
    assert said in client.post(page, change).text


def test_pages_of_the_track_lead_to_its_newest_final_results_and_back(client: Client, organizer) -> None:
    track, phase = ended_track()
    method = add(track, "Small").submission
    places = ["/", "/leaderboard/", "/leaderboard/track/", "/tracks/track/", method.get_absolute_url()]
    for place in places:
        assert "/results/autumn" not in client.get(place).text
    close(client, phase)
    for place in places:
        assert '<a href="/results/autumn/">Autumn: final results</a>' in client.get(place).text, place
    assert "Autumn: final results</a>" in client.get("/organize/").text
    assert "is closed. Its final ranks are in" in client.get("/leaderboard/track/").text
    assert "Final rank 1 in <a" in client.get(method.get_absolute_url()).text
    results = client.get("/results/autumn/").text
    assert all(f'href="{place}"' in results for place in places[2:])
    close(client, phase, slug="autumn-2", title="Corrected")
    for place in places:
        page = client.get(place).text
        assert '"/results/autumn-2/"' in page
        assert '"/results/autumn/"' not in page


def test_a_corrected_version_is_linked_from_the_first(client: Client, organizer) -> None:
    track, phase = ended_track()
    add(track, "Small")
    close(client, phase)
    assert "These results correct" not in client.get("/results/autumn/").text
    assert "corrected final results" in client.get(address(phase)).text
    assert "have this title already" in close(client, phase, slug="autumn-2").text
    correction = {"slug": "autumn-2", "title": "Autumn, corrected"}
    assert "This field is required" in close(client, phase, **correction, text="").text
    close(client, phase, **correction, text="A log was **forged**.")
    assert "There is a corrected version" in client.get("/results/autumn/").text
    corrected = client.get("/results/autumn-2/").text
    assert ", which ended on " in corrected
    assert "This corrected version was published on " in corrected
    assert f"Ranks follow the threshold ({phase.track.anls_threshold:.4f}) and order" in corrected
    assert "There is a corrected version" not in corrected
    assert 'These results correct <a href="/results/autumn/">' in corrected
    assert "A log was <strong>forged</strong>." in corrected
    assert re.search(r"Corrects http\S+/results/autumn/", client.get("/results/autumn-2/cite.bib").text)
    assert "It corrects http" in client.get("/results/autumn-2/files/README.md").text
    assert client.get("/results/autumn-2/files/snapshot.json").json()["corrects"].endswith("/results/autumn/")
    assert "have been corrected" in client.get("/news/results-autumn-2/").text
    assert "have been corrected" in mail.outbox[-1].body
    assert "final results corrected" in client.get("/tracks/track/").text
    page = client.get("/results/").text
    assert page.count(">replaced</span>") == page.count(">corrected version</span>") == 1
    assert page.index("Autumn, corrected") < page.index("Autumn: final results")


def test_results_say_which_runs_were_judged_under_earlier_rules(client: Client, organizer, tmp_path) -> None:
    track, phase = ended_track()
    add(track, "Old", bytes_total=10)
    track.clients, track.max_rounds = 12, 5
    track.save()
    add(track, "New", bytes_total=30)
    assert "met</span> No examinations are required" in client.get(address(phase)).text
    assert "1 ranked run was judged under rules that have changed" in client.get(address(phase)).text
    close(client, phase)
    page = client.get("/results/autumn/").text
    assert page.count("judged under earlier rules") == 1
    assert "(clients: 10, now 12; max rounds: 10000, now 5)" in page
    shown = client.get("/results/autumn/files/snapshot.json").json()["tracks"][0]
    (old,) = shown["earlier_rules"]
    assert (old["method"], old["rank"], old["rules"]) == ("Old", 1, {"clients": 10, "max_rounds": 10_000})
    with zipfile.ZipFile(io.BytesIO(client.get("/results/autumn/files/all.zip").content)) as files:
        files.extractall(tmp_path)
    command = [sys.executable, "-I", "-S", str(tmp_path / "autumn" / "verify.py")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "ranked runs judged under earlier rules, see earlier_rules in snapshot.json: 1" in done.stdout


def test_the_page_of_the_track_says_which_phases_are_to_be_closed_and_which_are(
    client: Client, organizer
) -> None:
    track, phase = ended_track()
    add(track, "Small")
    make_phase(track, name="Next", starts_at=timezone.now() + timedelta(days=1))
    page = f"/organize/tracks/{track.slug}/"
    ended = client.get(page).text
    assert "has ended, and its results aren't final yet." in ended
    assert ended.count("/close/") == 1
    assert f'href="{address(phase)}">Close “' in ended
    close(client, phase)
    closed = client.get(page).text
    assert '<a href="/results/autumn/">Autumn: final results</a>' in closed
    assert f'href="{address(phase)}?correct=1#publish">Publish corrected results' in closed
    assert "aren't final yet" not in closed


def test_final_results_say_how_bytes_are_known_and_how_far_runs_are_verified(
    client: Client, organizer
) -> None:
    track, phase = ended_track()
    track.phases.update(requires_counted=False)
    add(track, "Small")
    change_results(add(track, "Big", bytes_total=2_000_000), counting="declared")
    close(client, phase)
    page = client.get("/results/autumn/").text
    assert page.count("L0 recomputed") == 2
    assert page.index(">counted</div>") < page.index(">declared</div>")
    assert "declared where they are the team's word." in page
    # Results that were published before say less, and stay as they are.
    results = FinalResults.objects.get()
    for row in results.standings[0]["rows"]:
        del row["counting"], row["level"]
    results.save()
    page = client.get("/results/autumn/").text
    assert "L0 recomputed" not in page
    assert "the files say which" in page
    assert ", which the files state," in page


def test_the_announcement_of_the_results_reads_well_on_news_and_by_email(client: Client, organizer) -> None:
    track, phase = ended_track()
    add(track, "Small")
    close(client, phase, text="Thanks to **all** [authors](https://example.org/).")
    assert "Thanks to <strong>all</strong>" in client.get("/news/").text
    assert "Thanks to all authors (https://example.org/)." in mail.outbox[-1].body


def test_a_later_decision_on_a_published_rank_asks_for_a_correction(client: Client, organizer) -> None:
    organizer.user_permissions.add(Permission.objects.get(codename="change_submission"))
    track, phase = ended_track()
    first, second = add(track, "Small", bytes_total=10), add(track, "Big", bytes_total=30)
    close(client, phase)
    run, desk, published = f"/organize/runs/{first.pk}/", "Published results to correct", "/results/autumn/"
    assert "shows the run as rank 1 until you publish corrected results." in client.get(run).text
    change_results(second, anls=0.2)
    assert desk not in client.get("/organize/").text
    assert "valid any more" not in client.get(published).text
    change_results(second, anls=0.9)

    client.post(f"{run}disqualify/", {"reason": "Forged.", "confirmed": "on"})
    place = "Small, published as rank 1: disqualified by the organizers: Forged."
    page = client.get("/organize/").text
    assert desk in page
    card = page[page.index(desk) :]
    assert '<a href="/results/autumn/">Autumn: final results</a>' in card
    assert f'<a href="{address(phase)}?correct=1#publish">Publish corrected results' in card
    assert place in client.get("/organize/").text
    assert "This run still has rank 1 in what is published as" in client.get(run).text
    assert place in Client().get(published).text
    close(client, phase, slug="autumn-2", title="Corrected")
    assert desk not in client.get("/organize/").text
    assert place in client.get(published).text
    assert "valid any more" not in client.get("/results/autumn-2/").text

    client.post(f"{run}requalify/", {"reason": "It was another file.", "confirmed": "yes"})
    place = "Small, published without a rank: it is no longer disqualified: It was another file."
    assert place in client.get("/organize/").text
    assert place in client.get("/results/autumn-2/").text
    assert "This run has no rank in what is published as" in client.get(run).text
    close(client, phase, slug="autumn-3", title="Corrected again")
    assert desk not in client.get("/organize/").text


def test_the_page_of_a_run_without_a_rank_says_that_published_results_contain_it(
    client: Client, organizer
) -> None:
    organizer.user_permissions.add(Permission.objects.get(codename="change_submission"))
    track, phase = ended_track()
    add(track, "Small")
    missed = add(track, "Weak", anls=0.2)
    page = f"/organize/runs/{missed.pk}/"
    said = 'No rank in “<a href="/results/autumn/">'
    assert said not in client.get(page).text
    close(client, phase)
    late = add(track, "Late", anls=0.2)
    assert said in client.get(page).text
    assert said not in client.get(f"/organize/runs/{late.pk}/").text
    form = {"reason": "Forged.", "confirmed": "on"}
    done = client.post(f"{page}disqualify/", form, follow=True).text
    assert "Published final results that contain it stay as they are." in done
    assert said in done
    done = client.post(f"/organize/runs/{late.pk}/disqualify/", form, follow=True).text
    assert "stay as they are" not in done


def test_the_command_does_the_same(client: Client) -> None:
    track, phase = ended_track()
    waiting = add(track, "Waiting", state=RunState.RUNNING)
    options = {"slug": "autumn", "title": "Autumn", "stdout": (output := StringIO())}
    with pytest.raises(CommandError, match="can't be closed yet"):
        call_command("close_phase", "track", phase.name, **options)
    assert "Waiting of Team" in output.getvalue()
    waiting.state = RunState.REJECTED
    waiting.save()
    call_command("close_phase", "track", phase.name, **options)
    assert "Published at /results/autumn/" in output.getvalue()
    assert "No ranked runs." in client.get("/results/autumn/").text
    with pytest.raises(CommandError, match="already exists"):
        call_command("close_phase", "track", phase.name, **options)


def test_only_organizers_of_tracks_close_phases_and_add_a_doi(client: Client, organizer) -> None:
    _, phase = ended_track()
    close(client, phase)
    results = FinalResults.objects.get()
    change = f"/admin/leaderboard/finalresults/{results.pk}/change/"
    assert client.post(change, {"doi": "10.5281/zenodo.1"}).status_code == 302
    assert "https://doi.org/10.5281/zenodo.1" in client.get("/results/autumn/").text
    assert client.get("/results/nowhere/").status_code == 404
    client.force_login(make_organizer("organize"))
    assert client.get(address(phase)).status_code == 403
