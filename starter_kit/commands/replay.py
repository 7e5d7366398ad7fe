"""`pfl replay`."""

from typing import Annotated

import typer

from evaluator.messages.jobs import DRAWN_ROUNDS, MAX_DRAWN
from starter_kit.commands.app import new_app
from starter_kit.commands.options import BaseFolder, DataFolder, RunDirectory
from starter_kit.console import log, print_lines

app = new_app("Show the organizers the rounds that the site drew, or repeat these rounds as they do.")

Challenge = Annotated[
    str,
    typer.Option(
        "--challenge",
        help="The challenge that the site drew after the upload of the record or of transcript.jsonl; it determines "
        "the rounds.",
    ),
]

Drawn = Annotated[
    int,
    typer.Option(
        "--drawn",
        min=0,
        max=MAX_DRAWN,
        help="How many rounds the challenge draws, in addition to the last one; see the track's page.",
    ),
]


@app.command("open")
def open_(run: RunDirectory, challenge: Challenge, drawn: Drawn = DRAWN_ROUNDS) -> None:
    """Write the file that reveals the last round and the drawn ones. `pfl submit` does so automatically.

    For a replayable run, the file is RUN/round_opening.bin, with keys and vectors for the organizers only. For a run
    with a transcript, the file is RUN/opened_messages.bin, with messages and the states before the rounds.
    """
    from evaluator.messages.jobs import ArtifactKind
    from starter_kit.runs.folder import OPENED_MESSAGES, OPENING, RunFolder
    from starter_kit.runs.opened_messages import open_messages
    from starter_kit.runs.opened_round import open_rounds, rounds_in_words

    if ArtifactKind.TRANSCRIPT in RunFolder(run).files():
        if opened := open_messages(run, challenge, drawn):
            print_lines(f"{run / OPENED_MESSAGES}: {rounds_in_words(opened)}. Upload it now.")
        return
    numbers = open_rounds(run, challenge, drawn)
    print_lines(
        f"{run / OPENING}: {rounds_in_words(numbers)}. Whoever has it can subtract the noise of these rounds: give it "
        "to the organizers only, and never open another round.",
        f"When the organizers have it, delete {run / 'replay'} and {run / 'vectors'}.",
    )


@app.command("run")
def run_(
    run: RunDirectory,
    data: DataFolder,
    base: BaseFolder,
    challenge: Challenge,
    drawn: Drawn = DRAWN_ROUNDS,
) -> None:
    """Repeat the last round and the drawn ones as the organizers do, and compare them with the run."""
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
            drawn=drawn,
            data=data,
            base=base,
        ),
        train_round,
        log,
    )
    for number, found in replayed.comparisons.items():
        how = "bit for bit" if found.exact else f"within {found.distance:.2g} of {found.bound:.2g} clip norms"
        print_lines(f"Round {number} agrees, {how}.")
    print_lines(f"L2, {len(replayed.comparisons)} of {replayed.of} rounds.")
