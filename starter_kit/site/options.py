"""The options by which a command finds a participant's site, account and signing key."""

from pathlib import Path
from typing import Annotated

import typer

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.site.client import SiteClient

Site = Annotated[str, typer.Option("--site", envvar="PFL_SITE", help="The site's address.")]
ApiToken = Annotated[
    str, typer.Option("--token", envvar="PFL_TOKEN", help="API token from your account page.")
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key", envvar="PFL_KEY", help="The team's signing key; else one in your configuration folder."
    ),
]


def connect_where_named(site: str, token: str) -> SiteClient | None:
    """Access to the site, where a command can do without."""
    return SiteClient(site, token) if site and token else None


def connect(site: str, token: str) -> SiteClient:
    """Access to the site.

    Raises:
        ProblemError: (`E_CONFIGURATION`) The address or the API token is missing.
    """
    for name, value, expected, next_step in (
        (
            "--site or PFL_SITE",
            site,
            "the site's address",
            "Copy it from your browser: https://… without a path.",
        ),
        ("--token or PFL_TOKEN", token, "an API token", "Make one on your account page at the site."),
    ):
        if not value:
            raise ProblemError.of(
                ErrorCode.CONFIGURATION, where=name, expected=expected, found="nothing", next_step=next_step
            )
    return SiteClient(site, token)
