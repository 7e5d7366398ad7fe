"""ORCID iDs, by which researchers are distinguished: https://support.orcid.org/hc/en-us/articles/360006897674."""

import re

from django.core.exceptions import ValidationError

ADDRESS = "https://orcid.org/"
FORM = re.compile(r"(\d{4})-?(\d{4})-?(\d{4})-?(\d{3}[\dX])", re.ASCII)


def clean_orcid(text: str) -> str:
    """Return an iD in its usual form, `0000-0002-1825-0097`, from that or from its address; an empty text stays so.

    Raises `ValidationError` unless the last character is the checksum of the digits before it.
    """
    text = text.strip().upper()
    bare = re.sub(r"^(HTTPS?://)?(WWW\.)?(SANDBOX\.)?ORCID\.ORG/", "", text).rstrip("/")
    if not bare:
        return ""
    match = FORM.fullmatch(bare)
    if match is None:
        raise ValidationError("An ORCID iD has 16 digits, such as 0000-0002-1825-0097.")
    digits = "".join(match.groups())
    if check_character(digits[:-1]) != digits[-1]:
        raise ValidationError(
            "This isn't a valid ORCID iD: the last character doesn't match the other digits. Check for typos."
        )
    return "-".join(match.groups())


def check_character(digits: str) -> str:
    """Return the character that follows the digits by ISO 7064, MOD 11-2."""
    total = 0
    for digit in digits:
        total = (total + int(digit)) * 2
    result = (12 - total % 11) % 11
    return "X" if result == 10 else str(result)


def address_of(orcid: str) -> str:
    return ADDRESS + orcid
