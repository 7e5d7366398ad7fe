from django.apps import AppConfig


class OperationsConfig(AppConfig):
    name = "docvqa_site.operations"

    def ready(self) -> None:
        from docvqa_site.operations import connections  # noqa: F401  (connects its receivers)
        from docvqa_site.operations.telemetry import start_telemetry

        start_telemetry()
