import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from docvqa_site.audit.models import AuditEntry, personal, record
from tests.docvqa_site.factories import make_team, make_user

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
    assert "2 audit entries" in client.get(url).content.decode()


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
    team = make_team()
    for _ in range(15):
        record(make_user(), "team.created", team)
    with django_assert_max_num_queries(10):
        client.get(reverse("admin:audit_auditentry_changelist"))
