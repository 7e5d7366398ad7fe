from django.urls import URLPattern, URLResolver, include, path

from portal.leaderboard import views

boards: list[URLPattern | URLResolver] = [
    path("<slug:slug>/", views.track, name="track"),
    path("<slug:slug>.csv", views.track_csv, name="csv"),
]
urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.home, name="home"),
    path("leaderboard/", include((boards, "leaderboard"))),
]
