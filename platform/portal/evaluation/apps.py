from django.apps import AppConfig


class EvaluationConfig(AppConfig):
    name = "portal.evaluation"

    def ready(self) -> None:
        from portal.evaluation.queue.dispatch import start_all
        from portal.submissions.signals import runs_queued

        runs_queued.connect(start_all)
