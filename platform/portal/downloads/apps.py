from django.apps import AppConfig


class DownloadsConfig(AppConfig):
    name = "portal.downloads"
    default_auto_field = "django.db.models.BigAutoField"
