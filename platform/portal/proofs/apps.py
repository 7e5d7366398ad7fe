from django.apps import AppConfig


class ProofsConfig(AppConfig):
    name = "portal.proofs"

    def ready(self) -> None:
        from portal.proofs.pages import draw_later, draw_submitted, forget_pages
        from portal.submissions.signals import proof_revised, runs_queued
        from portal.uploads.signals import file_deleted

        runs_queued.connect(draw_submitted)
        proof_revised.connect(draw_later)
        file_deleted.connect(forget_pages)
