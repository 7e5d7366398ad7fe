"""News as an Atom feed."""

from datetime import datetime

from django.contrib.syndication.views import Feed
from django.db.models import QuerySet
from django.urls import reverse_lazy
from django.utils.feedgenerator import Atom1Feed

from docvqa_site.news.models import NewsItem, published
from docvqa_site.ui.markdown import render_markdown

LENGTH = 20


class NewsFeed(Feed[NewsItem, None]):
    """The newest announcements."""

    feed_type = Atom1Feed
    title = "PFL-DocVQA news"
    subtitle = "Announcements of the organizers"
    link = reverse_lazy("news:list")

    def items(self) -> QuerySet[NewsItem]:
        return published()[:LENGTH]

    def item_title(self, item: NewsItem) -> str:
        return item.title

    def item_description(self, item: NewsItem) -> str:
        return render_markdown(item.text)

    def item_pubdate(self, item: NewsItem) -> datetime:
        return item.published_at

    def item_updateddate(self, item: NewsItem) -> datetime:
        return item.published_at
