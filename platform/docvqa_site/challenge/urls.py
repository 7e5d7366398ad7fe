from django.urls import path

from docvqa_site.challenge import views

app_name = "challenge"
urlpatterns = [
    path("", views.track_list, name="list"),
    path("<slug:slug>/", views.track, name="track"),
    path("<slug:slug>/register/", views.register, name="register"),
    path("<slug:slug>/deadline.ics", views.deadline, name="deadline"),
]
