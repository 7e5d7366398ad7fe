import re
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from docvqa_site.audit.models import AuditEntry, personal, record
from docvqa_site.news.models import NewsItem
from docvqa_site.submissions.models import Run
from tests.docvqa_site.factories import (
    make_run,
    make_submission,
    make_team,
    make_token,
    make_track,
    make_user,
)

pytestmark = pytest.mark.django_db


def test_an_entry_says_who_did_what_to_what() -> None:
    user, team = make_user(), make_team()
    entry = record(user, "team.created", team, name="Engines")
    assert (entry.actor, entry.action, entry.details) == (user, "team.created", {"name": "Engines"})
    assert (entry.object_type, entry.object_id) == ("teams.team", str(team.pk))


def test_the_platform_acts_without_a_person() -> None:
    assert record(None, "run.scored", make_team()).actor is None


def test_an_entry_is_never_changed() -> None:
    entry = record(None, "run.scored", make_team())
    entry.action = "run.failed"
    with pytest.raises(TypeError, match="never changed"):
        entry.save()


def test_an_entry_is_never_deleted() -> None:
    entry = record(None, "run.scored", make_team())
    with pytest.raises(TypeError, match="never deleted"):
        entry.delete()


@pytest.fixture
def organizer(client: Client) -> None:
    client.force_login(make_user(is_staff=True, is_superuser=True))


@pytest.mark.usefixtures("organizer")
def test_organizers_search_and_filter_the_trail(client: Client) -> None:
    ada = make_user("ada@example.org")
    entry = record(ada, "team.created", make_team(), name=personal("Engines", ada))
    assert "Engines" in client.get(reverse("admin:audit_auditentry_change", args=[entry.pk])).text
    record(None, "run.scored", make_team())
    url = reverse("admin:audit_auditentry_changelist")
    assert "1 audit entry" in client.get(url, {"q": "ada@example.org"}).content.decode()
    assert "1 audit entry" in client.get(url, {"action": "run.scored"}).content.decode()
    page = client.get(url).content.decode()
    assert "2 audit entries" in page
    for words in (">team: created</a>", ">run: scored</a>", ">team</a>", f"{entry.at:%H:%M:%S} UTC"):
        assert words in page
    assert ">team.created" not in page
    assert ">teams.team" not in page
    assert '<a href="/"><img src="/static/ui/logo.svg" alt="" width="32" height="32"> PFL-DocVQA</a>' in page


@pytest.mark.usefixtures("organizer")
def test_an_entry_shows_its_values_in_full_and_of_long_texts_what_changed(client: Client) -> None:
    changed = {"description": ["Same.\n\n" + "a" * 300, "Same.\n\n" + "b" * 300], "paused": [False, True]}
    entry = record(
        None, "track.changed", make_track(), changes=changed, sha256="ab" * 32, at={"step": [1, 2]}
    )
    page = client.get(reverse("admin:audit_auditentry_change", args=[entry.pk])).text
    values = page[page.index('<dl class="values">') :]
    for text in (
        f"\n-{'a' * 300}\n+{'b' * 300}</dd>",
        "no → yes",
        "ab" * 32,
        "<dt>at: step</dt><dd>1, 2</dd>",
    ):
        assert text in values
    assert "&quot;" not in values


def test_what_people_did_is_found_apart_from_what_the_site_did(client: Client) -> None:
    organizer, team = make_user(is_staff=True, is_superuser=True), make_team()
    client.force_login(organizer)
    for actor, action in ((organizer, "team.invited"), (make_user(), "team.created"), (None, "run.scored")):
        record(actor, action, team)
    url = reverse("admin:audit_auditentry_changelist")
    numbers = {
        "people": "2 audit entries",
        "staff": "1 audit entry",
        "you": "1 audit entry",
        "site": "1 audit entry",
    }
    for by, number in numbers.items():
        assert number in client.get(url, {"by": by}).text
    assert f'href="{url}?by=staff"' in client.get("/organize/").text


@pytest.mark.usefixtures("organizer")
def test_what_is_gone_is_called_by_the_beginning_of_its_key(client: Client) -> None:
    key = uuid4()
    record(None, "run.queued", Run(pk=key))
    page = client.get(reverse("admin:audit_auditentry_changelist")).text
    assert f"The site queued run {str(key)[:8]}… (removed, or not shown to you) for evaluation" in page
    assert str(key) not in page


@pytest.mark.usefixtures("organizer")
def test_entries_are_sentences_with_names_links_and_values_before_and_after(client: Client) -> None:
    ada, team, track = make_user(name="Ada"), make_team(name="Engines"), make_track(name="Few bytes")
    record(ada, "team.invited", team, email=personal("new@example.org"))
    record(ada, "track.changed", track, changes={"name": ["Old <b>", "Few bytes"], "paused": [False, True]})
    record(ada, "track.added", track, changes={"clients": ["10", "10"]})
    record(None, "run.scored", make_run(make_submission(team, title="Sparse")), before="running")
    record(ada, "run_token.issued", make_token(team, track), team=team.pk, track=track.slug, sha256="ab" * 32)
    record(ada, "newsitem.deleted", NewsItem(pk=77), was="Gone")
    record(None, "run.scored", Run(pk=uuid4()), ends_at="2026-11-29T18:20:00+00:00")
    long = "Train on the clients. " * 20
    record(ada, "track.changed", track, changes={"description": [f"{long}Then stop.", f"{long}Then submit."]})
    page = client.get(reverse("admin:audit_auditentry_changelist")).text
    text = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    who, whom = f'<a href="/admin/accounts/user/{ada.pk}/change/">', f'<a href="/organize/teams/{team.pk}/">'
    assert f"{who}Ada</a> invited a person to team {whom}Engines</a>" in page
    assert f"<div>team: {whom}Engines</a></div>" in page
    assert "email: new@example.org" in text
    assert "name: Old &lt;b&gt; → Few bytes" in text
    assert re.search(r"<div>track: <a [^>]+>Few bytes</a>", page)
    assert "sha256: abababababab… " in text
    assert "paused: no → yes" in text
    assert "clients: 10" in text
    assert "10 → 10" not in text
    assert re.search(r"description: …\S.* Then stop\. → …\S.* Then submit\.", text)
    assert re.search(r'The site scored run <a href="/organize/runs/[0-9a-f-]+/">Sparse</a>', page)
    assert "The site scored run Sparse state: running → scored" in text
    assert re.search(r"The site scored run [0-9a-f]{8}… \(removed", text)
    assert "ends at: Nov 29, 2026, 18:20:00 UTC" in text
    assert "Ada deleted news item 77" in text
    history = client.get(reverse("admin:teams_team_history", args=[team.pk])).text
    assert f"invited a person to team {whom}Engines</a>" in history
    assert "Few bytes" not in history


@pytest.mark.usefixtures("organizer")
def test_decisions_on_registrations_and_second_factors_are_in_words(client: Client) -> None:
    ada, team = make_user(name="Ada"), make_team(name="Engines")
    registration = team.registrations.create(track=make_track(name="Few bytes"), created_by=ada)
    record(ada, "teamregistration.admitted", registration, before="waiting")
    record(ada, "user.second_factor_added", ada, type="recovery_codes")
    page = client.get(reverse("admin:audit_auditentry_changelist")).text
    text = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert "Ada admitted a team: Engines in Few bytes" in text
    assert "type: Recovery codes" in text


@pytest.mark.usefixtures("organizer")
def test_an_invitation_to_every_track_names_none(client: Client) -> None:
    track = make_track(name="Low-resource ANLS")
    for action, role in (("invited", "reviewer"), ("joined", "all_tracks"), ("invited", "organizer")):
        record(None, f"staff.{action}", track, role=role)
    page = client.get("/admin/audit/auditentry/").text
    assert "The site invited a person to the reviewers of privacy proofs, in every track" in page
    assert "The site joined the organizers of all tracks" in page
    assert re.search(r"The site invited a person to the staff of <a [^>]+>Low-resource ANLS", page)


@pytest.mark.usefixtures("organizer")
def test_not_even_organizers_add_change_or_delete_entries(client: Client) -> None:
    entry = record(None, "run.scored", make_team())
    assert client.get(reverse("admin:audit_auditentry_change", args=[entry.pk])).status_code == 200
    for view, arguments in [("add", []), ("change", [entry.pk]), ("delete", [entry.pk])]:
        url = reverse(f"admin:audit_auditentry_{view}", args=arguments)
        assert client.post(url, {"action": "x", "post": "yes"}).status_code == 403
    changelist = reverse("admin:audit_auditentry_changelist")
    client.post(changelist, {"action": "delete_selected", "_selected_action": [str(entry.pk)], "post": "yes"})
    assert AuditEntry.objects.get().action == "run.scored"


@pytest.mark.usefixtures("organizer")
def test_the_list_costs_the_same_for_many_entries(
    client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(15):
        record(make_user(), "team.created", make_team())
        record(make_user(), "run.scored", make_run(budget=1.0))
    with django_assert_max_num_queries(16):
        client.get(reverse("admin:audit_auditentry_changelist"))
