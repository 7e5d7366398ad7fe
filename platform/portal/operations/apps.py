from django.apps import AppConfig


class OperationsConfig(AppConfig):
    name = "portal.operations"
    label = "operations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from portal.operations.telemetry import start_telemetry

        start_telemetry()
