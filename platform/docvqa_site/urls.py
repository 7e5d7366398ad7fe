"""All addresses of the site."""

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from docvqa_site import well_known
from docvqa_site.evaluation import urls as evaluation
from docvqa_site.operations import views as operations
from docvqa_site.pages import urls as leaderboard
from docvqa_site.submissions import urls as submissions
from docvqa_site.teams import urls as teams

# Organizers log in where everyone does: with a verified address, and with attempts limited.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]
admin.site.site_title = "PFL-DocVQA"

# The page of a submission has the progress of its evaluation and its ranks, so the pages share one namespace.
SUBMISSION_PAGES = [*submissions.urlpatterns, *evaluation.urlpatterns, *leaderboard.submissions]
# So has the page of a team its results.
TEAM_PAGES = [*teams.urlpatterns, *leaderboard.teams]

urlpatterns = [
    path("healthz", operations.alive, name="healthz"),
    path("readyz", operations.ready, name="readyz"),
    path("metrics", operations.show_metrics, name="metrics"),
    path("favicon.ico", well_known.favicon, name="favicon"),
    path("sitemap.xml", well_known.sitemap, name="sitemap"),
    path("robots.txt", well_known.robots_txt, name="robots_txt"),
    path(".well-known/security.txt", well_known.security_txt, name="security_txt"),
    # The home page shows both leaderboards.
    path("", include("docvqa_site.pages.urls")),
    path("account/", include("docvqa_site.accounts.urls")),
    path("account/data/", include("docvqa_site.people.urls")),
    path("", include("docvqa_site.notifications.urls")),
    path("account/", include("allauth.account.urls")),
    path("account/linked/", include("allauth.socialaccount.urls")),
    path("account/", include("allauth.socialaccount.providers.github.urls")),
    path("account/", include("allauth.socialaccount.providers.orcid.urls")),
    path("account/2fa/", include("allauth.mfa.urls")),
    path("", include((TEAM_PAGES, "teams"))),
    path("tracks/", include("docvqa_site.challenge.urls")),
    path("privacy/calculator/", include("docvqa_site.calculator.urls")),
    path("docs/", include("docvqa_site.docs.urls")),
    path("about/", include("docvqa_site.about.urls")),
    path("results/", include((leaderboard.final, "results"))),
    path("news/", include("docvqa_site.news.urls")),
    path("data/", include("docvqa_site.downloads.urls")),
    path("submissions/", include((SUBMISSION_PAGES, "submissions"))),
    path("uploads/", include("docvqa_site.uploads.urls")),
    path("organize/", include("docvqa_site.organizers.urls")),
    path("reviews/", include("docvqa_site.reviews.urls")),
    path("api/v1/", include("docvqa_site.api.urls")),
    # What people try who look for the API or the teams.
    path("api/", RedirectView.as_view(pattern_name="api-docs")),
    path("teams/", RedirectView.as_view(pattern_name="leaderboard:index")),
    # Organizers change their passwords where everyone does, too.
    path("admin/password_change/", RedirectView.as_view(pattern_name="account_change_password")),
    path("admin/", admin.site.urls),
]

handler500 = operations.server_error
