from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    name = "docvqa_site.notifications"

    def ready(self) -> None:
        from docvqa_site.notifications import security  # noqa: F401  (connects its receivers)
