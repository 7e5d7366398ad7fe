"""The API and its routers."""

from django.urls import path, re_path
from django.views.generic import RedirectView

from docvqa_site.api import (
    artifacts,
    downloads,
    notifications,
    overview,
    records,
    submissions,
    teams,
    uploads,
)
from docvqa_site.api.authentication import TokenOrSession
from docvqa_site.api.errors import answer_with_problems
from docvqa_site.api.schema import DocumentedAPI
from docvqa_site.api.throttling import API_LIMITS, PUBLIC_LIMITS, UPLOAD_LIMITS
from docvqa_site.api.views import docs, no_such_operation
from docvqa_site.boards.api import router as leaderboards
from evaluator.messages.jobs import evaluator_version

api = DocumentedAPI(
    title="PFL-DocVQA benchmark",
    version=evaluator_version(),
    description="Everything a participant can do on the site. Every error is a list of coded problems.",
    urls_namespace="api",
    auth=TokenOrSession(),
    docs_url=None,
    throttle=API_LIMITS,
)
answer_with_problems(api)
api.add_router("", overview.router)
api.add_router("", records.router)
api.add_router("", teams.router)
api.add_router("/downloads", downloads.router)
api.add_router("/notifications", notifications.router)
api.add_router("/submissions", submissions.router)
api.add_router("/submissions", artifacts.router)
api.add_router("/uploads", uploads.router, throttle=UPLOAD_LIMITS)
api.add_router("/leaderboards", leaderboards, throttle=PUBLIC_LIMITS)
api.add_router("/leaderboards", overview.public, throttle=PUBLIC_LIMITS)

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="api-docs")),
    path("docs", docs(api), name="api-docs"),
    path("", api.urls),
    re_path("", no_such_operation),
]
