from django.urls import URLPattern, URLResolver, include, path

from portal.leaderboard import (
    citing,
    exports,
    home_page,
    method_page,
    plot_pages,
    team_submissions,
    track_page,
)

boards: list[URLPattern | URLResolver] = [
    path("", home_page.index, name="index"),
    path("<slug:slug>/", track_page.track, name="track"),
    path("<slug:slug>/progress/", plot_pages.progress, name="progress"),
    path("<slug:slug>.csv", exports.track_csv, name="csv"),
]
# The pages of submitted methods and the list of a team's own, under /submissions/.
submissions: list[URLPattern] = [
    path("", team_submissions.listing, name="list"),
    path("<uuid:submission_id>/", method_page.method, name="detail"),
    path("<uuid:submission_id>/cite.bib", citing.bibtex_file, name="bibtex"),
]
urlpatterns: list[URLPattern | URLResolver] = [
    path("", home_page.home, name="home"),
    path("leaderboard/", include((boards, "leaderboard"))),
]
