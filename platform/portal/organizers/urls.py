from django.urls import path

from portal.organizers import views

app_name = "organizers"

urlpatterns = [
    path("", views.desk, name="desk"),
    path("failures/<str:code>/queue/", views.queue_failed, name="queue_failed"),
]
