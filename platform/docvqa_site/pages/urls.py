from django.urls import URLPattern, URLResolver, include, path

from docvqa_site.boards import exports, feeds, hub
from docvqa_site.pages import (
    citing,
    comparison,
    evidence,
    home,
    method,
    own_submissions,
    participation,
    progress,
    proof,
    results,
    run,
    search,
    team,
    track,
)

boards: list[URLPattern | URLResolver] = [
    path("", home.index, name="index"),
    path("<slug:slug>/", track.track, name="track"),
    path("<slug:slug>/compare/", comparison.compare, name="compare"),
    path("<slug:slug>/progress/", progress.progress, name="progress"),
    path("<slug:slug>/feed/", feeds.newest, name="feed"),
    path("<slug:slug>.csv", exports.track_csv, name="csv"),
    path("<slug:slug>.json", exports.track_json, name="json"),
    path("<slug:slug>.schema.json", exports.json_schema, name="json_schema"),
]
# The pages of submitted methods and the list of a team's own, under /submissions/.
submissions: list[URLPattern] = [
    path("", own_submissions.listing, name="list"),
    path("<uuid:submission_id>/", method.method, name="detail"),
    path("<uuid:submission_id>/proof/", proof.proof, name="proof"),
    path("<uuid:submission_id>/proof/file/", proof.file, name="proof_file"),
    path("<uuid:submission_id>/proof/<int:number>.webp", proof.page, name="proof_page"),
    path("<uuid:submission_id>/runs/<uuid:run_id>/", run.run, name="run"),
    path("<uuid:submission_id>/runs/<uuid:run_id>/<str:kind>/", evidence.evidence, name="evidence"),
    path("<uuid:submission_id>/files/<uuid:artifact_id>/", evidence.own_file, name="own_file"),
    path("<uuid:submission_id>/cite.bib", citing.bibtex_file, name="bibtex"),
    path("<uuid:submission_id>/CITATION.cff", citing.citation_file, name="citation"),
    path("<uuid:submission_id>/eval_results.yaml", hub.eval_results, name="eval_results"),
]
# The final results of closed phases, under /results/.
final: list[URLPattern] = [
    path("", results.listing, name="list"),
    path("<slug:slug>/", results.detail, name="detail"),
    path("<slug:slug>/cite.bib", results.bibtex_file, name="bibtex"),
    path("<slug:slug>/files/all.zip", results.archive, name="archive"),
    path("<slug:slug>/files/<str:name>", results.file, name="file"),
]
teams: list[URLPattern] = [path("teams/<slug:slug>/", team.team, name="detail")]
urlpatterns: list[URLPattern | URLResolver] = [
    path("", home.home, name="home"),
    path("search/", search.search, name="search"),
    path("participation/", participation.participation, name="participation"),
    path("leaderboard/", include((boards, "leaderboard"))),
]
