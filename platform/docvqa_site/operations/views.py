"""The addresses for whatever supervises the site: whether it runs, whether it can work, and its metrics."""

import ipaddress
import secrets
import sys

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.template import loader
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import requires_csrf_token
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from docvqa_site.operations import metrics
from docvqa_site.operations.checks import CHECKS, OK
from docvqa_site.operations.full_disk import is_full_disk
from docvqa_site.uploads.problems import problem_response
from evaluator.errors import ErrorCode, ProblemError

# How long whoever met a full disk is asked to wait.
RETRY_AFTER_S = 120


@never_cache
@require_safe
def alive(_request: HttpRequest) -> JsonResponse:
    """Respond that the process is up. Nothing else is checked, so that a fault elsewhere never restarts it."""
    return JsonResponse({"status": OK})


@never_cache
@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """Respond whether all that the site needs works; 503 otherwise.

    `?check=database&check=disk` asks for some of the checks, such as those that one web server should leave a load
    balancer for. A name that doesn't exist is a 404, so that a misspelled probe can't succeed.
    """
    # Each once, or one request could make the site ask its services hundreds of times.
    names = list(dict.fromkeys(request.GET.getlist("check"))) or list(CHECKS)
    if not CHECKS.keys() >= set(names):
        raise Http404
    outcomes = {name: CHECKS[name]() for name in names}
    is_ready = all(outcome == OK for outcome in outcomes.values())
    return JsonResponse(
        {"status": "ready" if is_ready else "not ready", "checks": outcomes}, status=200 if is_ready else 503
    )


@never_cache
@require_safe
def show_metrics(request: HttpRequest) -> HttpResponse:
    """Respond with the site's metrics, in Prometheus's text format; 404 to whoever may not read them."""
    if not _may_read_metrics(request):
        raise Http404
    return HttpResponse(metrics.exposition(), content_type=CONTENT_TYPE_LATEST)


def _may_read_metrics(request: HttpRequest) -> bool:
    """Return whether the request has the token or, where none is set, comes straight from a private address."""
    if token := settings.METRICS_TOKEN:
        expected = f"Bearer {token}".encode()
        return secrets.compare_digest(request.headers.get("Authorization", "").encode(), expected)
    # What a proxy passes on comes from elsewhere.
    if "X-Forwarded-For" in request.headers or "Forwarded" in request.headers:
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_private
    except ValueError:
        return False


@requires_csrf_token
def server_error(request: HttpRequest) -> HttpResponse:
    """Respond to an exception with a page that names the request, by which the log has the details.

    If a disk is full, the status is 503, or that of the API's problem. The template gets no request: what knows it may
    ask the database, which may be the reason for the exception.
    """
    is_full = is_full_disk(sys.exception())
    if is_full and request.path.startswith("/api/"):
        response: HttpResponse = problem_response(ProblemError.of(ErrorCode.STORE_FULL))
    else:
        template = loader.get_template("503.html" if is_full else "500.html")
        page = template.render({"request_id": request.META.get("REQUEST_ID", "")})
        response = HttpResponse(page, status=503 if is_full else 500)
    if is_full:
        response["Retry-After"] = str(RETRY_AFTER_S)
    return response
