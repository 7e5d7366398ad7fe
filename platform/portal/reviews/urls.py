from django.urls import URLPattern, URLResolver, path

from portal.reviews import proof_views, views

app_name = "reviews"
urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.queue, name="queue"),
    path("<uuid:submission_id>/proof/", proof_views.proof, name="proof"),
    path("<uuid:submission_id>/proof/file/", proof_views.file, name="proof_file"),
    path("<uuid:submission_id>/proof/changes/", proof_views.changes, name="proof_changes"),
    path("proof-pages/<str:token>/<int:number>.webp", proof_views.page, name="proof_page"),
]
