from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "portal.accounts"

    def ready(self) -> None:
        from portal.accounts import security_events  # noqa: F401  (connects its receivers)
