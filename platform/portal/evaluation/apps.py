from django.apps import AppConfig


class EvaluationConfig(AppConfig):
    name = "portal.evaluation"
    label = "evaluation"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from portal.evaluation.queue.dispatch import start_all
        from portal.submissions.signals import runs_queued

        runs_queued.connect(start_all)
