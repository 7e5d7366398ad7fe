from django.urls import URLPattern, URLResolver, include, path

from portal.leaderboard import exports, track_page, views

boards: list[URLPattern | URLResolver] = [
    path("<slug:slug>/", track_page.track, name="track"),
    path("<slug:slug>.csv", exports.track_csv, name="csv"),
]
urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.home, name="home"),
    path("leaderboard/", include((boards, "leaderboard"))),
]
