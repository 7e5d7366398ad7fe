from django.apps import AppConfig


class OperationsConfig(AppConfig):
    name = "portal.operations"

    def ready(self) -> None:
        from portal.operations.telemetry import start_telemetry

        start_telemetry()
