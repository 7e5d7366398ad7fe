"""`pfl token`."""

from typing import Annotated

import typer

from starter_kit.commands.options import ApiToken, Site, connect
from starter_kit.console import print_lines


def token(
    track: Annotated[str, typer.Option(help="Name of the track, such as track-2.")] = "track-2",
    site: Site = "",
    token: ApiToken = "",
) -> None:
    """Request a token for one training run. `pfl train` does so automatically if the site is set."""
    run_token = connect(site, token).issue_run_token(track).token
    print_lines(run_token)
