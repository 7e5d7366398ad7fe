from django.urls import path

from docvqa_site.submissions import views

urlpatterns = [
    path("create/", views.create, name="create"),
    path("tokens/", views.tokens, name="tokens"),
    path("tokens/<int:token_id>/", views.explain_token, name="explain_token"),
    path("tokens/<int:token_id>/release/", views.release_token, name="release_token"),
    path("discard/", views.discard_drafts, name="discard_drafts"),
    path("<uuid:submission_id>/edit/", views.edit, name="edit"),
    path("<uuid:submission_id>/runs/", views.add_run, name="add_run"),
    path("<uuid:submission_id>/runs/<uuid:run_id>/remove/", views.remove_run, name="remove_run"),
    path("<uuid:submission_id>/files/<uuid:artifact_id>/remove/", views.remove_file, name="remove_file"),
    path(
        "<uuid:submission_id>/challenges/<int:token_id>/", views.explain_challenge, name="explain_challenge"
    ),
    path("<uuid:submission_id>/submit/", views.submit, name="submit"),
    path("<uuid:submission_id>/copy/", views.copy, name="copy"),
    path("<uuid:submission_id>/publish/", views.publish, name="publish"),
    path("<uuid:submission_id>/name/", views.give_name, name="give_name"),
    path("<uuid:submission_id>/publish-proof/", views.publish_proof, name="publish_proof"),
    path("<uuid:submission_id>/withdraw/", views.withdraw, name="withdraw"),
]
