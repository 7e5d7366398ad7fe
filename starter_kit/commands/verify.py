"""`pfl verify`."""

from typing import Annotated

import typer

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.commands.app import new_app
from starter_kit.console import print_lines

app = new_app()

# The exit status where a figure doesn't follow, as of `diff`.
DIFFERS = 1
BYTES_NOTE = (
    "Bytes are those in the logs. Counting them again needs the messages, which aren't public: only the site's workers "
    "have done so. "
)


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
    # A track without privacy has no ε.
    figures = [f"{verified.epsilons} ε"] if verified.epsilons else []
    figures += [_counted(verified.bytes_counted, "byte count")] if verified.bytes_counted else []
    print_lines(
        f"Recomputed from the public files: {', '.join([*figures, _counted(verified.ranks, 'rank')])} of "
        f"{_counted(verified.runs, 'row')}; all match. "
        f"{BYTES_NOTE if verified.bytes_counted else ''}"
        "Scores need the secret test set, and can't be verified here."
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
