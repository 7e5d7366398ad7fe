"""`pfl verify`."""

from typing import Annotated

import typer

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.commands.app import new_app
from starter_kit.console import print_lines

app = new_app()

# The exit status where a figure doesn't follow, as of `diff`.
DIFFERS = 1


@app.command()
def verify(
    site: Annotated[
        str, typer.Argument(help="The site's address, such as https://benchmark.example.", metavar="SITE")
    ],
    track: Annotated[str | None, typer.Option(help="The track; by default, all.")] = None,
) -> None:
    """Recompute ε, bytes, checks and ranks of a site's boards from its public files. Needs no account."""
    from starter_kit.verifying import Verified, site_at
    from starter_kit.verifying import verify as differences

    known = site_at(site)
    tracks = [one for one in known.tracks() if track in (None, one.slug)]
    if not tracks:
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            where="--track",
            expected=" or ".join(one.slug for one in known.tracks()),
            found=track,
        )
    verified = Verified()
    for one in tracks:
        first = next(differences(known, one, verified), None)
        if first is not None:
            print_lines(str(first))
            raise typer.Exit(DIFFERS)
    for where in verified.without_files:
        print_lines(f"{where}: no public files")
    print_lines(
        f"{verified.epsilons} ε, {verified.bytes_counted} byte counts and {verified.ranks} ranks of "
        f"{verified.runs} rows follow from the public files. "
        "Scores need the secret test set, and can't be verified here."
    )
