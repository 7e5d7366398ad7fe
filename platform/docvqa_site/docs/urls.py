from django.urls import path

from docvqa_site.docs import views

app_name = "docs"
urlpatterns = [
    path("", views.contents, name="contents"),
    path("files/<path:name>.md", views.send_source, name="source"),
    path("files/<path:path>", views.send_file, name="file"),
    path("<path:address>", views.show_document, name="document"),
]
