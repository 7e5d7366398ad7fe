"""The API and its routers."""

from django.urls import path, re_path
from django.views.generic import RedirectView

from evaluator.messages.jobs import evaluator_version
from portal.api import artifacts, downloads, notifications, overview, records, submissions, teams, uploads
from portal.api.authentication import TokenOrSession
from portal.api.errors import answer_with_problems
from portal.api.schema import DocumentedAPI
from portal.api.throttling import API_LIMITS, PUBLIC_LIMITS, UPLOAD_LIMITS
from portal.api.views import docs, no_such_operation
from portal.boards.api import router as leaderboards

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
