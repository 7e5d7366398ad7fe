import re
from datetime import timedelta
from html import unescape

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from docvqa_site.audit.models import AuditEntry
from docvqa_site.challenge.models import Anonymity, Track
from docvqa_site.challenge.rankings import BEST_ANLS, BEST_ANLS_AT_BUDGET, FEWEST_BYTES
from docvqa_site.downloads.models import DownloadKind
from tests.docvqa_site.factories import make_download, make_phase, make_track, make_user

pytestmark = pytest.mark.django_db

NOW = timezone.now()


# Around what stays in one piece of a command.
UNIT = re.compile(r'<span class="unit">(.*?)</span>', re.DOTALL)


def page(client: Client, track: Track) -> str:
    return UNIT.sub(r"\1", client.get(track.get_absolute_url()).text)


def test_the_list_names_every_track(client: Client) -> None:
    first, second = make_track(), make_track(paused=True)
    html = client.get(reverse("challenge:list")).content.decode()
    for track in (first, second):
        assert track.get_absolute_url() in html
    assert "Paused by the organizers." in html


def test_a_track_that_opens_later_is_not_called_closed(client: Client) -> None:
    make_track(opens_at=timezone.now() + timedelta(days=1))
    html = client.get(reverse("challenge:list")).text
    assert "Opens on" in html
    assert ">not open yet</span>" in html
    assert ">closed</span>" not in html


def test_an_empty_list_says_so(client: Client) -> None:
    assert b"No tracks yet." in client.get(reverse("challenge:list")).content


def test_a_bytes_track_shows_its_threshold_and_quota(client: Client) -> None:
    html = page(client, make_track(anls_threshold=0.8242, submissions_per_day=3))
    assert "ANLS of at least 0.8242" in html
    assert "3 submissions per team per 24 hours" in html
    assert "Training record" not in html


@pytest.mark.parametrize("requires_code", [False, True])
def test_a_description_is_asked_for_where_the_command_has_one(client: Client, requires_code: bool) -> None:
    html = page(client, make_track(BEST_ANLS_AT_BUDGET, requires_code=requires_code))
    assert ("<code>method.md</code>" in html) is requires_code
    assert ("--description @method.md" in html) is requires_code
    assert "<code>proof.md</code>" in html


@pytest.mark.parametrize("requires_code", [False, True])
def test_what_a_track_asks_for_in_writing_is_drafted_before_it_is_submitted(
    client: Client, requires_code: bool
) -> None:
    for kind, drafts in ((FEWEST_BYTES, []), (BEST_ANLS_AT_BUDGET, ["proof.md"])):
        track = make_track(kind, requires_code=requires_code)
        html = unescape(page(client, track))
        drafts = [*(["method.md"] if requires_code else []), *drafts]
        blocks = re.findall(r'<pre [^>]*aria-label="Commands [^>]*>(.*?)</pre>', html, re.DOTALL)
        assert (f"\npfl describe save/{track.slug}" in blocks[0]) is bool(drafts)
        assert [block.startswith("pfl submit") for block in blocks] == ([False, True] if drafts else [False])
        asked = " and ".join(f"<code>{draft}</code>" for draft in drafts)
        assert (f"fill in the gaps in {asked}, each marked" in html) is bool(drafts)


def test_the_files_from_which_bytes_are_counted_are_listed_where_a_rank_needs_them(client: Client) -> None:
    track = make_track()
    html = page(client, track)
    assert 'data-label="How many">one per run, required for ranking' in html
    assert "only the messages of the rounds that the site selects" in html
    track.phases.update(requires_counted=False)
    assert 'data-label="How many">one per run, optional' in page(client, track)
    assert "The messages of all rounds" not in page(client, make_track(BEST_ANLS_AT_BUDGET))


def test_where_bytes_rank_nothing_no_rank_needs_the_files_they_are_counted_from(client: Client) -> None:
    assert "required for ranking" not in page(client, make_track(BEST_ANLS, slug="score"))


def test_a_track_names_its_base_weights_and_what_may_differ_from_them(client: Client) -> None:
    html = page(client, make_track(reference="vt5-base"))
    assert "vt5-base" in html
    assert "All</dd>" in html
    html = page(client, make_track(trainable="*.bias\n<b>*"))
    assert "<code>*.bias</code> or <code>&lt;b&gt;*</code>" in html
    assert "<b>*" not in html


def test_a_private_track_shows_budgets_and_delta_and_requires_record_and_proof(client: Client) -> None:
    html = page(client, make_track(BEST_ANLS_AT_BUDGET, budgets=[1, 4.5], delta=1e-5))
    after = html.partition("<h3>In the browser</h3>")[2]
    steps = [
        "Create or join",
        "Train in a terminal",
        "Start a submission",
        "pfl key show",
        "choose its folder",
    ]
    places = [after.index(step) for step in (*steps, "Add the privacy proof", "Click Submit")]
    assert places == sorted(places)
    assert "choose its folder" not in page(client, make_track())
    for text in ("ε\xa0=\xa01, 4.5", "10⁻⁵", "Training record", "Privacy proof", "--proof"):
        assert text in html
    assert f'href="{reverse("docs:document", args=["proofs/"])}">the proof that comes with it</a>' in html


def test_it_says_that_checkpoints_are_attacked_for_leakage(client: Client) -> None:
    assert "an attack on its checkpoint" not in page(client, make_track())
    assert "an attack on its checkpoint" in page(client, make_track(leakage_set="train"))


def test_it_shows_how_to_submit_from_a_terminal(client: Client) -> None:
    track = make_track(reference="vt5-base")
    html = page(client, track)
    assert f"pfl check save/{track.slug} --base base --track {track.slug}" in html
    assert f"pfl submit save/{track.slug} --track {track.slug}" in html
    # The commands keep a token that is set, and the title is the participant's to choose.
    assert "PFL_TOKEN=${PFL_TOKEN:-…}" in html
    assert "can't be changed after you submit" in html
    assert "pfl data download" not in html
    for kind in (DownloadKind.DATA, DownloadKind.WEIGHTS):
        make_download(kind)
    assert f"pfl data download --track {track.slug}" in page(client, track)


def test_it_says_what_a_submission_makes_public_and_how_to_hide_it(client: Client) -> None:
    track = make_track()
    html = page(client, track)
    assert "The method, its log and any training record become public along with the results" in html
    assert "<code>--private</code>" not in html
    track.phases.update(allows_private=True, anonymity="until_end")
    html = page(client, track)
    assert (
        "add <code>--private</code> to keep them unpublished, or <code>--anonymous</code> to hide your team"
        in html
    )


def test_a_private_track_has_the_command_for_each_budget(client: Client) -> None:
    html = page(client, make_track(BEST_ANLS_AT_BUDGET, budgets=[1, 4.5, 8]))
    assert "--set target_epsilon=1 --set server_learning_rate=0.35</pre>" in html
    assert "--set target_epsilon=4.5</pre>" in html
    assert html.count("<pre") == html.count("<pre data-copy ")
    assert "--set target_epsilon=8 --set server_learning_rate=1.2\n" in html


def test_a_closed_track_offers_no_submission(client: Client) -> None:
    track = make_track(closes_at=timezone.now())
    html = page(client, track)
    assert ">Submit</a>" not in html
    assert "The deadline was" in html


def test_each_section_of_the_rules_has_a_link_before_those_to_the_other_parts(client: Client) -> None:
    html = page(client, make_track(description="## Ranking\n\nA\n\n## ε & you\n\nB\n\n## Ranking\n\n### C"))
    links = re.findall(r'<li><a href="#([^"]+)">(.*?)</a></li>', html)
    assert links[:4] == [
        ("rules-ranking", "Ranking"),
        ("rules-ε--you", "ε &amp; you"),
        ("rules-ranking-2", "Ranking"),
        ("facts", "At a glance"),
    ]
    for anchor, _ in links:
        assert html.count(f'id="{anchor}"') == 1


def test_rules_are_rendered_and_made_safe(client: Client) -> None:
    html = page(client, make_track(description="**Rules** <script>alert(1)</script>"))
    assert "<strong>Rules</strong>" in html
    assert "<script>alert" not in html


def test_a_missing_track_is_not_found(client: Client) -> None:
    assert client.get("/tracks/nothing/").status_code == 404


@pytest.mark.parametrize("path", ["/tracks/", "/tracks/track-x/"])
def test_the_pages_only_read(client: Client, path: str) -> None:
    make_track(slug="track-x")
    assert client.post(path).status_code == 405


def test_the_list_costs_three_queries(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(5):
        make_track()
    with django_assert_num_queries(3):
        client.get(reverse("challenge:list"))


def test_a_change_by_an_organizer_is_recorded_with_old_and_new(client: Client) -> None:
    organizer = make_user(is_staff=True, is_superuser=True)
    client.force_login(organizer)
    track = make_track()
    form = {**admin_form(track), "name": "Another"}
    assert client.post(reverse("admin:challenge_track_change", args=[track.pk]), form).status_code == 302
    entry = AuditEntry.objects.get(action="track.changed")
    assert entry.actor == organizer
    assert entry.details == {"changes": {"name": [track.name, "Another"]}}


def test_rules_are_changed_at_the_desk_alone(client: Client) -> None:
    client.force_login(make_user(is_staff=True, is_superuser=True))
    track = make_track()
    changed = {"anls_threshold": "0.1", "delta": "1e-6", "description": "Other rules.", "paused": "on"}
    client.post(reverse("admin:challenge_track_change", args=[track.pk]), {**admin_form(track), **changed})
    before = [getattr(track, name) for name in changed]
    track.refresh_from_db()
    assert [getattr(track, name) for name in changed] == before


def test_slug_and_ranking_stay_as_they_are_once_a_track_exists(client: Client) -> None:
    client.force_login(make_user(is_staff=True, is_superuser=True))
    track = make_track()
    form = {**admin_form(track), "slug": "other", "ranking": "anls"}
    client.post(reverse("admin:challenge_track_change", args=[track.pk]), form)
    changed = Track.objects.get()
    assert (changed.slug, changed.ranking) == (track.slug, track.ranking)


def test_the_administration_neither_adds_nor_deletes_a_track(client: Client) -> None:
    client.force_login(make_user(is_staff=True, is_superuser=True))
    track = make_track()
    assert client.get(reverse("admin:challenge_track_add")).status_code == 403
    assert client.post(reverse("admin:challenge_track_delete", args=[track.pk])).status_code == 403
    assert "Delete selected" not in client.get(reverse("admin:challenge_track_changelist")).text


def test_several_phases_are_listed_with_their_rules_and_deadlines(client: Client) -> None:
    track = make_track(closes_at=NOW + timedelta(days=1), allows_private=True, anonymity=Anonymity.UNTIL_END)
    make_phase(track, name="Final", starts_at=NOW + timedelta(days=2), ends_at=NOW + timedelta(days=3))
    html = page(client, track)
    for text in ("Final", "teams may keep submissions unpublished", "until the phase ends", "per 24 hours"):
        assert text in html
    glance = html.partition('<h2 id="facts">')[2].partition("</aside>")[0]
    assert "<dt>Closes</dt>" not in glance
    assert glance.count(", until ") + glance.count("<dd>until ") == 2
    calendar = client.get(reverse("challenge:deadline", args=[track.slug])).text
    assert calendar.count("BEGIN:VEVENT") == 2
    assert "Final ends" in calendar


def admin_form(track: Track) -> dict[str, str]:
    """What the administration's form of `track` sends when nothing is changed."""
    names = ["name", "summary", "description", "position", "max_checkpoint_bytes", "challenges_per_day"]
    names += ["registration", "registration_questions"]
    names += [
        "reference",
        "trainable",
        "test_set",
        "clients",
        "max_rounds",
        "leakage_set",
        "leakage_split",
        "anls_threshold",
        "delta",
        "budgets",
        "providers_per_client",
        "drawn_rounds",
        "required_reviews",
        "sampling_rule",
        "accountant",
        "adjacency",
    ]
    return {name: str(getattr(track, name)) for name in names}


def test_a_page_says_what_a_track_risks_whose_ranks_need_no_examination(client: Client) -> None:
    track = make_track(BEST_ANLS_AT_BUDGET)
    risk = "a forged record that passes every check can be ranked"
    assert risk in page(client, track)
    track.phases.update(examined_ranks=3, examined_level=2)
    assert risk not in page(client, track)
