from django.apps import AppConfig


class ProofsConfig(AppConfig):
    name = "docvqa_site.proofs"

    def ready(self) -> None:
        from docvqa_site.proofs.named_code import forget_cited_code
        from docvqa_site.proofs.pages import forget_pages
        from docvqa_site.proofs.shown import display_problems, prepare
        from docvqa_site.submissions.signals import display_asked, proof_arrived
        from docvqa_site.uploads.signals import file_deleted

        proof_arrived.connect(prepare)
        display_asked.connect(display_problems)
        file_deleted.connect(forget_pages)
        file_deleted.connect(forget_cited_code)
