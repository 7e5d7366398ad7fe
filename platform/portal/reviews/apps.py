from django.apps import AppConfig


class ReviewsConfig(AppConfig):
    name = "portal.reviews"
    label = "reviews"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from portal.reviews.services import reopen
        from portal.submissions.signals import proof_revised

        proof_revised.connect(reopen)
