from django.urls import path

from docvqa_site.downloads import views

app_name = "downloads"
urlpatterns = [
    path("", views.data, name="data"),
    path("terms/<int:terms_id>/", views.show_terms, name="terms"),
    path("<slug:slug>/<str:filename>", views.send_file, name="file"),
]
