"""`pfl token`."""

import secrets
from typing import Annotated

import typer

from starter_kit.commands.options import ApiToken, Site, connect
from starter_kit.console import log, print_lines


def token(
    track: Annotated[str, typer.Option(help="Name of the track, such as track-2.")] = "track-2",
    reserve: Annotated[
        bool,
        typer.Option(
            "--reserve",
            help="Reserve the token for a machine that can't reach the site. `pfl train` on other machines "
            "won't take it automatically.",
        ),
    ] = False,
    site: Site = "",
    token: ApiToken = "",
) -> None:
    """Request a token for one training run. `pfl train` does so automatically if the site is set."""
    training = secrets.token_hex(16) if reserve else ""
    run_token = connect(site, token).issue_run_token(track, training).token
    if not reserve:
        log("Your next `pfl train` takes this token by itself. Reviewers see how many tokens were issued.")
    print_lines(run_token)
