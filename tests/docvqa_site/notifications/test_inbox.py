"""The page of a person's notifications, and their number in the menu."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.notifications.inbox import unread_count
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.models import Notification
from docvqa_site.submissions import retention
from docvqa_site.submissions.retention import clean_up
from tests.docvqa_site.factories import make_track, make_user

pytestmark = pytest.mark.django_db

PAGE = "/account/notifications/"


@pytest.fixture
def ada(client: Client) -> User:
    user = make_user()
    client.force_login(user)
    return user


def make_notification(user: User, **fields) -> Notification:
    return Notification.objects.create(
        user=user, **{"kind": Kind.RESULTS, "subject": "FedAvg has been scored", **fields}
    )


def test_unread_ones_are_counted_in_the_menu_until_they_are_marked(client: Client, ada: User) -> None:
    first, second = make_notification(ada), make_notification(ada)
    page = client.get(PAGE).content.decode()
    assert "Notifications (2)" in page
    assert unread_count(ada) == 2, "looking at the page marks none"
    late = make_notification(ada)
    answer = client.post(f"{PAGE}read/", {"until": max(first.pk, second.pk)}, follow=True)
    assert "The notifications have been marked as read." in answer.text
    assert [one.pk for one in Notification.objects.filter(read_at=None)] == [late.pk]


@pytest.mark.parametrize("until", ["", "x", "9" * 30, "-1", "²"])
def test_a_number_that_is_none_marks_nothing(client: Client, ada: User, until: str) -> None:
    make_notification(ada)
    assert client.post(f"{PAGE}read/", {"until": until}).status_code == 302
    assert unread_count(ada) == 1


def test_opening_one_marks_it_and_leads_to_its_page(client: Client, ada: User) -> None:
    one = make_notification(ada, page="/submissions/")
    assert f'form="open-{one.pk}" class="as-link">{one.subject}</button>' in client.get(PAGE).text
    assert client.get(f"{PAGE}{one.pk}/open/").status_code == 405
    assert client.post(f"{PAGE}{one.pk}/open/")["Location"] == "/submissions/"
    assert client.post(f"{PAGE}{make_notification(ada).pk}/open/")["Location"] == PAGE
    assert unread_count(ada) == 0


def test_nobody_sees_or_marks_those_of_others(client: Client, ada: User) -> None:
    other = make_notification(make_user(), subject="Secret of others")
    assert "Secret of others" not in client.get(PAGE).content.decode()
    assert client.post(f"{PAGE}{other.pk}/open/").status_code == 404
    client.post(f"{PAGE}read/", {"until": other.pk})
    other.refresh_from_db()
    assert other.read_at is None


@pytest.mark.parametrize("path", ["", "read/", "mail/", "1/open/"])
def test_without_a_session_everything_leads_to_the_log_in(path: str) -> None:
    ask = Client().post if path else Client().get
    assert "/account/login/" in ask(PAGE + path)["Location"]


def test_text_of_others_is_shown_as_text(client: Client, ada: User) -> None:
    make_notification(ada, subject="<b>bold</b>", text="<script>alert(1)</script>")
    page = client.get(PAGE).content.decode()
    assert "<b>bold" not in page
    assert "<script>alert" not in page


def test_the_page_takes_as_many_queries_for_many_as_for_one(
    client: Client, ada: User, django_assert_num_queries
) -> None:
    for _ in range(25):
        make_notification(ada)
    # Session, person, two for the list, the newest, the choice of mails, the number in the menu, and the banners.
    with django_assert_num_queries(8):
        client.get(PAGE)


def test_visitors_who_are_not_logged_in_cost_no_query_more(django_assert_num_queries) -> None:
    make_track()
    # The tracks and their phases, and the banners.
    with django_assert_num_queries(3):
        Client().get("/tracks/")


def test_old_ones_and_those_beyond_a_persons_limit_are_removed(ada: User, monkeypatch, settings) -> None:
    monkeypatch.setattr(retention, "MOST_NOTIFICATIONS", 2)
    old = make_notification(make_user(), created_at=timezone.now() - timedelta(days=91))
    kept = make_notification(make_user(), created_at=timezone.now() - timedelta(days=89))
    many = [make_notification(ada) for _ in range(4)]
    assert clean_up()["notifications"] == 3
    assert set(Notification.objects.all()) == {kept, *many[2:]}
    assert old.pk not in Notification.objects.values_list("pk", flat=True)
    settings.RETENTION_NOTIFICATION_DAYS = 0
    make_notification(make_user(), created_at=timezone.now() - timedelta(days=5000))
    assert clean_up()["notifications"] == 0
