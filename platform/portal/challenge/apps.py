from django.apps import AppConfig


class ChallengeConfig(AppConfig):
    name = "portal.challenge"
    label = "challenge"
    default_auto_field = "django.db.models.BigAutoField"
