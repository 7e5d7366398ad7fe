from django.urls import path

from docvqa_site.accounts import views

app_name = "accounts"
urlpatterns = [
    path("", views.profile, name="profile"),
    path("tokens/", views.tokens, name="tokens"),
    path("tokens/<int:token_id>/revoke/", views.revoke, name="revoke"),
]
