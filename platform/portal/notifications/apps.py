from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    name = "portal.notifications"

    def ready(self) -> None:
        from portal.notifications import security  # noqa: F401  (connects its receivers)
