"""Licenses by their SPDX identifiers, so that what one allows can be looked up."""

from django.core.exceptions import ValidationError
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

EXAMPLES = (
    "An SPDX identifier, such as CC-BY-4.0, GPL-3.0-only, or LicenseRef-DocILE for a license of your own."
)


def validate_license(text: str) -> None:
    """Raise `ValidationError` unless this is an SPDX license expression."""
    try:
        canonicalize_license_expression(text)
    except InvalidLicenseExpression as error:
        raise ValidationError(
            "“%(text)s” isn't an SPDX license identifier. Look it up at spdx.org/licenses, for example CC0-1.0, "
            "CC-BY-4.0, GPL-3.0-only or Apache-2.0; name a license of your own LicenseRef-….",
            code="license",
            params={"text": text},
        ) from error
