from django.urls import path

from portal.news import views
from portal.news.feeds import NewsFeed

app_name = "news"
urlpatterns = [
    path("", views.news_list, name="list"),
    path("feed.atom", NewsFeed(), name="feed"),
    path("<slug:slug>/", views.item, name="item"),
]
