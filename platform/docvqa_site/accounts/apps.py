from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "docvqa_site.accounts"

    def ready(self) -> None:
        from docvqa_site.accounts import security_events  # noqa: F401  (connects its receivers)
