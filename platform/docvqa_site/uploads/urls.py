from django.urls import path

from docvqa_site.uploads import views

app_name = "uploads"
urlpatterns = [
    path("parts/<str:token>", views.receive_part, name="part"),
    path("files/<str:token>", views.send_file, name="file"),
]
