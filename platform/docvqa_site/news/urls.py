from django.urls import path

from docvqa_site.news import views
from docvqa_site.news.feeds import NewsFeed

app_name = "news"
urlpatterns = [
    path("", views.news_list, name="list"),
    path("feed.atom", NewsFeed(), name="feed"),
    path("<slug:slug>/", views.item, name="item"),
]
