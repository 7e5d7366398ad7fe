from django.urls import path

from docvqa_site.about import views

app_name = "about"
urlpatterns = [
    path("contact/", views.contact, name="contact"),
    path("cite/", views.cite, name="cite"),
    path("privacy/", views.privacy, name="privacy"),
    path("conduct/", views.conduct, name="conduct"),
]
