from django.apps import AppConfig


class ProofsConfig(AppConfig):
    name = "portal.proofs"

    def ready(self) -> None:
        from portal.proofs.pages import forget_pages
        from portal.proofs.shown import prepare
        from portal.submissions.signals import proof_arrived
        from portal.uploads.signals import file_deleted

        proof_arrived.connect(prepare)
        file_deleted.connect(forget_pages)
