from typing import Any

from cryptography.fernet import InvalidToken
from django.core.management.base import BaseCommand, CommandError
from typing_extensions import override

from docvqa_site.accounts.services import reencrypt_second_factors


class Command(BaseCommand):
    help = (
        "Encrypt second factors with the current secret key, so that earlier ones can go from the fallbacks."
    )

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        try:
            changed = reencrypt_second_factors()
        except InvalidToken as error:
            raise CommandError(
                "A second factor was encrypted with a key that is neither PFL_SECRET_KEY nor among "
                "PFL_SECRET_KEY_FALLBACKS. Nothing was changed."
            ) from error
        self.stdout.write(
            f"Encrypted {changed} authenticator apps and sets of recovery codes with the current key."
        )
