from django.apps import AppConfig


class ReviewsConfig(AppConfig):
    name = "docvqa_site.reviews"
    label = "reviews"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from docvqa_site.audit.hiding import entries_asked
        from docvqa_site.reviews.history import hidden_decisions
        from docvqa_site.reviews.services import reopen
        from docvqa_site.submissions.signals import proof_revised

        proof_revised.connect(reopen)
        entries_asked.connect(hidden_decisions)
