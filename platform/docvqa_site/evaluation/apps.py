from django.apps import AppConfig


class EvaluationConfig(AppConfig):
    name = "docvqa_site.evaluation"

    def ready(self) -> None:
        from docvqa_site.evaluation.intake.challenge_checks import check_again_on_commit
        from docvqa_site.evaluation.queue.dispatch import start_all
        from docvqa_site.submissions.signals import challenges_changed, runs_queued

        runs_queued.connect(start_all)
        challenges_changed.connect(check_again_on_commit)
