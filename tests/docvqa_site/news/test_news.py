from datetime import timedelta
from xml.etree import ElementTree

import pytest
from django.test import Client
from django.utils import timezone

from docvqa_site.news.models import NewsItem
from tests.docvqa_site.ui.test_pages import check

pytestmark = pytest.mark.django_db
ATOM = "{http://www.w3.org/2005/Atom}"


def publish(title: str = "Phase one is open", slug: str = "phase-one", **fields: object) -> NewsItem:
    return NewsItem.objects.create(title=title, slug=slug, text="# Dates\n\n*Now*.", **fields)


def test_news_are_listed_and_have_pages(client: Client) -> None:
    item = publish()
    for address in ("/news/", item.get_absolute_url()):
        check(client, address)
        assert "<em>Now</em>" in client.get(address).text


def test_an_empty_list_says_so(client: Client) -> None:
    check(client, "/news/")
    assert "no news yet" in client.get("/news/").text


def test_news_appear_at_their_time(client: Client) -> None:
    item = publish(published_at=timezone.now() + timedelta(days=1))
    assert item.title not in client.get("/news/").text
    assert client.get(item.get_absolute_url()).status_code == 404
    assert item.title not in client.get("/news/feed.atom").text


def test_the_feed_has_them_with_absolute_addresses(client: Client) -> None:
    item = publish()
    response = client.get("/news/feed.atom")
    assert response["Content-Type"].startswith("application/atom+xml")
    feed = ElementTree.fromstring(response.content)
    (entry,) = feed.findall(f"{ATOM}entry")
    assert entry.findtext(f"{ATOM}title") == item.title
    assert entry.find(f"{ATOM}link").get("href").endswith(item.get_absolute_url())
    assert entry.find(f"{ATOM}link").get("href").startswith("http")
    assert "<em>Now</em>" in str(entry.findtext(f"{ATOM}summary"))
