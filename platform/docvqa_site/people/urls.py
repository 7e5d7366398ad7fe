from django.urls import path

from docvqa_site.people import views

app_name = "people"
urlpatterns = [
    path("", views.data, name="data"),
    path("my-data.json", views.download, name="download"),
    path("delete/", views.delete, name="delete"),
    path("keep/", views.keep, name="keep"),
]
