from django.urls import URLPattern, URLResolver, include, path

from portal.leaderboard import home_page, views

boards: list[URLPattern | URLResolver] = [
    path("", home_page.index, name="index"),
    path("<slug:slug>/", views.track, name="track"),
    path("<slug:slug>.csv", views.track_csv, name="csv"),
]
urlpatterns: list[URLPattern | URLResolver] = [
    path("", home_page.home, name="home"),
    path("leaderboard/", include((boards, "leaderboard"))),
]
