"""`pfl replay`."""

from typing import Annotated

import typer

from starter_kit.commands.app import new_app
from starter_kit.commands.options import BaseFolder, DataFolder, RunDirectory
from starter_kit.console import print_lines

app = new_app("Open a round of a replayable run for the organizers, and replay it as they do.")

Challenge = Annotated[
    str,
    typer.Option(
        "--challenge",
        help="The challenge that the site drew after the upload of the record; it determines the round.",
    ),
]


@app.command("open")
def open_(run: RunDirectory, challenge: Challenge) -> None:
    """Write RUN/round_opening.bin: the drawn round's key and vectors. It is secret and only for the organizers."""
    from starter_kit.runs.folder import OPENING
    from starter_kit.runs.opened_round import open_round

    number = open_round(run, challenge)
    print_lines(
        f"{run / OPENING}: round {number}. Whoever has it can subtract the noise of this round: give it to the "
        "organizers only, and never open another round.",
        f"When the organizers have it, delete {run / 'replay'} and {run / 'vectors'}.",
    )


@app.command("run")
def run_(run: RunDirectory, data: DataFolder, base: BaseFolder, challenge: Challenge) -> None:
    """Repeat the opened round and compare it with the run, as the organizers do."""
    from evaluator.messages.jobs import ArtifactKind
    from starter_kit.replay.examination import ReplayInputs, examine
    from starter_kit.replay.training import train_round
    from starter_kit.runs.folder import OPENING, SETTINGS, RunFolder

    folder = RunFolder(run)
    replayed = examine(
        ReplayInputs(
            record=folder.file(ArtifactKind.TRAINING_RECORD),
            annex=folder.file(ArtifactKind.TRAINING_ANNEX),
            opening=run / OPENING,
            settings=run / SETTINGS,
            challenge=challenge,
            data=data,
            base=base,
        ),
        train_round,
    )
    found = replayed.comparison
    how = "bit for bit" if found.exact else f"within {found.distance:.2g} of {found.bound:.2g} clip norms"
    print_lines(f"Round {replayed.round} agrees, {how}.")
