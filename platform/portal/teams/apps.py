from django.apps import AppConfig


class TeamsConfig(AppConfig):
    name = "portal.teams"
    label = "teams"
    default_auto_field = "django.db.models.BigAutoField"
