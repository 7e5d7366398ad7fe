from django.apps import AppConfig


class EvaluationConfig(AppConfig):
    name = "portal.evaluation"

    def ready(self) -> None:
        from portal.evaluation.intake.tries import check_again_on_commit
        from portal.evaluation.queue.dispatch import start_all
        from portal.submissions.signals import runs_queued, tries_changed

        runs_queued.connect(start_all)
        tries_changed.connect(check_again_on_commit)
