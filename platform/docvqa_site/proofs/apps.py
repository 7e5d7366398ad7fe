from django.apps import AppConfig


class ProofsConfig(AppConfig):
    name = "docvqa_site.proofs"

    def ready(self) -> None:
        from docvqa_site.proofs.named_code import forget_cited_code
        from docvqa_site.proofs.pages import forget_pages
        from docvqa_site.proofs.shown import prepare
        from docvqa_site.submissions.signals import proof_arrived
        from docvqa_site.uploads.signals import file_deleted

        proof_arrived.connect(prepare)
        file_deleted.connect(forget_pages)
        file_deleted.connect(forget_cited_code)
