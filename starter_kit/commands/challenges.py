"""`pfl challenges`: the unresolved challenges of the team, for which the site hasn't accounted a run yet."""

from typing import TYPE_CHECKING, Annotated

import typer

from starter_kit.commands.app import new_app
from starter_kit.commands.options import ApiToken, Site, connect
from starter_kit.console import print_lines

if TYPE_CHECKING:
    from evaluator.messages.api import IssuedRunToken

app = new_app("List your team's unresolved challenges, and explain them to the reviewers.")


@app.command("list")
def list_challenges(
    track: Annotated[str, typer.Option(help="Name of the track, such as track-2.")] = "track-2",
    site: Site = "",
    token: ApiToken = "",
) -> None:
    """List your team's unresolved challenges (without a run whose ε was recomputed) and your explanations."""
    found = [one for one in connect(site, token).run_tokens() if one.track == track and one.is_unresolved]
    print_lines(*(map(_line, found) if found else [f"No unresolved challenges in {track}"]))
    if not all(one.explanation for one in found):
        print_lines(
            "The challenge of a run that you are still submitting is resolved once the site has recomputed its ε. "
            "Explain each of the others: `pfl challenges explain TOKEN TEXT`"
        )


@app.command()
def explain(
    run_token: Annotated[str, typer.Argument(help="A token from `pfl challenges list`.", show_default=False)],
    text: Annotated[str, typer.Argument(help="What happened, in plain text.", show_default=False)],
    site: Site = "",
    token: ApiToken = "",
) -> None:
    """Explain to the reviewers why a challenge led to no run. This replaces an earlier explanation."""
    explained = connect(site, token).explain_challenge(run_token, text)
    print_lines(_line(explained))


def _line(token: "IssuedRunToken") -> str:
    drawn = f"{token.challenged_at:%Y-%m-%d %H:%M} UTC" if token.challenged_at else "not drawn"
    return f"{token.token}  {drawn}  {token.explanation or '(not explained)'}"
