from django.apps import AppConfig
from django.db.models.signals import post_migrate


class AccountsConfig(AppConfig):
    name = "docvqa_site.accounts"

    def ready(self) -> None:
        from docvqa_site.accounts import security_events  # noqa: F401  (connects its receivers)
        from docvqa_site.accounts.groups import fill_groups

        post_migrate.connect(fill_groups)
