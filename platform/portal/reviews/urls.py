from django.urls import URLPattern, URLResolver, path

from portal.reviews import views

app_name = "reviews"
urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.queue, name="queue"),
    path("<uuid:submission_id>/proof/", views.proof, name="proof"),
]
