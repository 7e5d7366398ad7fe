from django.apps import AppConfig


class LivenessConfig(AppConfig):
    name = "portal.liveness"
    label = "liveness"
    default_auto_field = "django.db.models.BigAutoField"
