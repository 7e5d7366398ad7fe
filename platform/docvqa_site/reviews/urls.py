from django.urls import URLPattern, URLResolver, path

from docvqa_site.reviews import code_views, desk_views, proof_views, run_appeal_views, team_views, views

app_name = "reviews"
urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.queue, name="queue"),
    path("<uuid:submission_id>/", desk_views.desk, name="desk"),
    path("<uuid:submission_id>/draft/", desk_views.draft, name="draft"),
    path("<uuid:submission_id>/messages/", desk_views.message, name="message"),
    path("<uuid:submission_id>/assign/", desk_views.assignment, name="assign"),
    path("<uuid:submission_id>/decline/", desk_views.step_aside, name="decline"),
    path("<uuid:submission_id>/take/", desk_views.take, name="take"),
    path("<uuid:submission_id>/team/", team_views.team, name="team"),
    path("<uuid:submission_id>/team/messages/", team_views.team_message, name="team_message"),
    path("<uuid:submission_id>/team/revision/", team_views.revision, name="revision"),
    path("<uuid:submission_id>/team/appeal/", team_views.team_appeal, name="team_appeal"),
    path("<uuid:submission_id>/code/<uuid:artifact_id>/", code_views.code_file, name="code_file"),
    path("kit/<path:path>", code_views.kit_file, name="kit_file"),
    path("runs/<uuid:run_id>/appeal/", run_appeal_views.run_appeal, name="run_appeal"),
    path("<uuid:submission_id>/proof/", proof_views.proof, name="proof"),
    path("<uuid:submission_id>/proof/file/", proof_views.file, name="proof_file"),
    path("<uuid:submission_id>/proof/changes/", proof_views.changes, name="proof_changes"),
    path("proof-pages/<str:token>/<int:number>.webp", proof_views.page, name="proof_page"),
]
