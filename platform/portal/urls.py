"""All addresses of the site."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("", include("portal.leaderboard.urls")),  # the home page shows both leaderboards
    path("account/", include("portal.accounts.urls")),
    path("account/", include("allauth.account.urls")),
    path("team/", include("portal.teams.urls")),
    path("tracks/", include("portal.challenge.urls")),
    path("submissions/", include("portal.submissions.urls")),
    path("uploads/", include("portal.uploads.urls")),
    path("reviews/", include("portal.reviews.urls")),
    path("api/v1/", include("portal.api.urls")),
    path("admin/", admin.site.urls),
]
