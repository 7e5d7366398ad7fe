"""Optional reports to services outside: errors to Sentry, traces to an OpenTelemetry collector.

Neither is installed nor started unless its environment variable names where to report to.
"""

import importlib
import os
from types import ModuleType

from django.core.exceptions import ImproperlyConfigured

from evaluator.worker.logs import mask_secrets

SENTRY_VARIABLE = "PFL_SENTRY_DSN"
# OpenTelemetry's own name; its other variables, such as OTEL_SERVICE_NAME, hold as well.
OTEL_VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"
# Probes, and addresses that open something by themselves.
NOT_TRACED = "healthz,readyz,metrics,uploads/,invitation,confirm-email,password/reset/key"


def start_telemetry() -> None:
    """Start what the environment names.

    Raises:
        ImproperlyConfigured: A package that it needs isn't installed.
    """
    if dsn := os.environ.get(SENTRY_VARIABLE):
        _start_sentry(dsn)
    if os.environ.get(OTEL_VARIABLE):
        _start_tracing()


def _start_sentry(dsn: str) -> None:
    sentry = _required("sentry_sdk", SENTRY_VARIABLE, "sentry")

    def without_secrets(event: dict[str, object], _hint: object) -> dict[str, object]:
        """Drop what a visitor sent, and mask the address that they asked for."""
        request = event.get("request")
        if isinstance(request, dict):
            event["request"] = {
                "method": request.get("method"),
                "url": mask_secrets(str(request.get("url", ""))),
            }
        return event

    sentry.init(
        dsn=dsn,
        send_default_pii=False,
        include_local_variables=False,
        max_request_body_size="never",
        before_send=without_secrets,
    )


def _start_tracing() -> None:
    def needed(module: str) -> ModuleType:
        return _required(f"opentelemetry.{module}", OTEL_VARIABLE, "otel")

    provider = needed("sdk.trace").TracerProvider()
    exporter = needed("exporter.otlp.proto.http.trace_exporter").OTLPSpanExporter()
    provider.add_span_processor(needed("sdk.trace.export").BatchSpanProcessor(exporter))
    needed("trace").set_tracer_provider(provider)
    os.environ.setdefault("OTEL_PYTHON_DJANGO_EXCLUDED_URLS", NOT_TRACED)
    needed("instrumentation.django").DjangoInstrumentor().instrument()
    needed("instrumentation.celery").CeleryInstrumentor().instrument()


def _required(module: str, variable: str, extra: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImproperlyConfigured(
            f"{variable} is set, and {error.name} isn't installed: pip install 'pfl-docvqa-site[{extra}]'"
        ) from error
