from django.urls import path

from docvqa_site.evaluation import views

urlpatterns = [
    path("<uuid:submission_id>/cancel/", views.cancel, name="cancel"),
    path("<uuid:submission_id>/status/", views.status, name="status"),
]
