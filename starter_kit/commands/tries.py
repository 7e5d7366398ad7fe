"""`pfl tries`: the lost tries of the team, which are challenges that the site drew without an accounted run since."""

from typing import TYPE_CHECKING, Annotated

import typer

from starter_kit.commands.app import new_app
from starter_kit.commands.options import ApiToken, Site, connect
from starter_kit.console import print_lines

if TYPE_CHECKING:
    from evaluator.messages.api import IssuedRunToken

app = new_app("List your team's lost tries, and explain them to the reviewers.")


@app.command("list")
def list_tries(
    track: Annotated[str, typer.Option(help="Name of the track, such as track-2.")] = "track-2",
    site: Site = "",
    token: ApiToken = "",
) -> None:
    """List your team's lost tries (challenges without a run whose ε was recomputed) and your explanations."""
    found = [one for one in connect(site, token).run_tokens() if one.track == track and one.is_lost]
    print_lines(*(map(_line, found) if found else [f"No lost tries in {track}"]))


@app.command()
def explain(
    run_token: Annotated[str, typer.Argument(help="A token from `pfl tries list`.", show_default=False)],
    text: Annotated[str, typer.Argument(help="What happened, in plain text.", show_default=False)],
    site: Site = "",
    token: ApiToken = "",
) -> None:
    """Explain to the reviewers why a challenge led to no run. This replaces an earlier explanation."""
    explained = connect(site, token).explain_try(run_token, text)
    print_lines(_line(explained))


def _line(token: "IssuedRunToken") -> str:
    drawn = f"{token.challenged_at:%Y-%m-%d %H:%M} UTC" if token.challenged_at else "not drawn"
    return f"{token.token}  {drawn}  {token.explanation or '(not explained)'}"
