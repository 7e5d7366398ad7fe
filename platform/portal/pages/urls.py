from django.urls import URLPattern, URLResolver, include, path

from portal.boards import exports, feeds, hub
from portal.pages import citing, comparison
from portal.pages import home as home_page
from portal.pages import method as method_page
from portal.pages import own_submissions as team_submissions
from portal.pages import progress as plot_pages
from portal.pages import proof as proof_page
from portal.pages import team as team_page
from portal.pages import track as track_page

boards: list[URLPattern | URLResolver] = [
    path("", home_page.index, name="index"),
    path("<slug:slug>/", track_page.track, name="track"),
    path("<slug:slug>/compare/", comparison.compare, name="compare"),
    path("<slug:slug>/progress/", plot_pages.progress, name="progress"),
    path("<slug:slug>/feed/", feeds.newest, name="feed"),
    path("<slug:slug>.csv", exports.track_csv, name="csv"),
    path("<slug:slug>.json", exports.track_json, name="json"),
    path("<slug:slug>.schema.json", exports.json_schema, name="json_schema"),
]
# The pages of submitted methods and the list of a team's own, under /submissions/.
submissions: list[URLPattern] = [
    path("", team_submissions.listing, name="list"),
    path("<uuid:submission_id>/", method_page.method, name="detail"),
    path("<uuid:submission_id>/proof/", proof_page.proof, name="proof"),
    path("<uuid:submission_id>/proof/file/", proof_page.file, name="proof_file"),
    path("<uuid:submission_id>/proof/<int:number>.webp", proof_page.page, name="proof_page"),
    path("<uuid:submission_id>/cite.bib", citing.bibtex_file, name="bibtex"),
    path("<uuid:submission_id>/CITATION.cff", citing.citation_file, name="citation"),
    path("<uuid:submission_id>/eval_results.yaml", hub.eval_results, name="eval_results"),
]
teams: list[URLPattern] = [path("teams/<slug:slug>/", team_page.team, name="detail")]
urlpatterns: list[URLPattern | URLResolver] = [
    path("", home_page.home, name="home"),
    path("leaderboard/", include((boards, "leaderboard"))),
]
