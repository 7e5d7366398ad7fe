from django.apps import AppConfig


class EvaluationConfig(AppConfig):
    name = "portal.evaluation"
    label = "evaluation"
    default_auto_field = "django.db.models.BigAutoField"
