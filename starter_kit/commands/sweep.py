"""`pfl sweep`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Column, Table
from rich.text import Text

from starter_kit.commands.app import new_app
from starter_kit.commands.options import BaseFolder, Changes, DataFolder, KeyFile
from starter_kit.commands.training_run import RunOptions, run_training
from starter_kit.console import console, log, print_lines, progress

if TYPE_CHECKING:
    from starter_kit.sweeping import Trial

NUMBERS = ("ANLS", "accuracy", "GB", "ε")

app = new_app()


@app.command()
def sweep(
    config: Annotated[
        str, typer.Argument(help="A YAML file, or the name of one of the kit's configs.", show_default=False)
    ],
    data: DataFolder,
    base: BaseFolder,
    out: Annotated[
        Path, typer.Option("--out", help="Folder in which to create the run folders.", show_default=False)
    ],
    grid: Annotated[
        list[str],
        typer.Option(
            "--grid",
            help="A setting with its values, such as local.learning_rate=1e-3,3e-3; can be repeated.",
            show_default=False,
        ),
    ],
    changes: Changes = None,
    public_data: Annotated[
        bool,
        typer.Option(
            "--public-data", help="Assert that the data needs no protection, to sweep a private method."
        ),
    ] = False,
    list_only: Annotated[
        bool, typer.Option("--list", help="Print the command of each run without training.")
    ] = False,
    key: KeyFile = None,
) -> None:
    """Train a config with every combination of some settings, score the runs on the validation split, and compare.

    Existing runs are not trained again, so you can run the same command again after an interruption.
    """
    from starter_kit.sweeping import check_public, command_lines, require_questions, trials_of

    trials = trials_of(config, changes or [], grid)

    # What trains takes seconds to load: mistakes are reported before.
    from evaluator.docvqa.dataset import Dataset
    from starter_kit.federation.clients import clients_of

    check_public(trials, clients_of(Dataset(data, "train")), public=public_data)
    require_questions(data)
    if list_only:
        print_lines(*command_lines(trials, config, data, base, out, changes or []))
        return
    for trial in trials:
        trial.check_folder(out)
    for trial in trials:
        log(f"run {trial.number} of {len(trials)}: {', '.join(trial.changes)}")
        _train(trial, RunOptions(data, base, out / trial.name, key=key))
    console.print(_table(trials, out))


def _train(trial: "Trial", options: RunOptions) -> None:
    """Train and score a run, as far as it isn't done yet."""
    from evaluator.messages.jobs import ArtifactKind
    from starter_kit.evaluation.scores import score_checkpoint
    from starter_kit.reporting.metrics import SUMMARY, read_summary
    from starter_kit.reporting.report import write_report
    from starter_kit.runs.folder import RunFolder
    from starter_kit.runs.results import keep_scores
    from starter_kit.runs.training import in_process

    out = options.out
    if not out.exists():
        unfinished = out.with_name(f"{out.name}.unfinished").exists()
        run_training(trial.settings, replace(options, resume=unfinished), in_process)
    if read_summary(out / SUMMARY).split != "valid":
        checkpoint = RunFolder(out).file(ArtifactKind.CHECKPOINT)
        with progress("questions") as show:
            output = score_checkpoint(
                checkpoint, base=options.base, data=options.data, split="valid", on_progress=show
            )
        keep_scores(out, output.result, "valid")
        write_report(out)


def _table(trials: "Sequence[Trial]", out: Path) -> Table:
    """The runs with what they differ in, the best first."""
    from evaluator.scoring.metrics import cut
    from starter_kit.reporting.metrics import SUMMARY, read_summary
    from starter_kit.reporting.rounding import GIGABYTE, epsilon_text, significant

    found = [(trial, read_summary(out / trial.name / SUMMARY)) for trial in trials]
    found.sort(key=lambda pair: pair[1].anls or 0.0, reverse=True)
    names = [change.partition("=")[0] for change in trials[0].changes]
    table = Table("run", *names, *(Column(name, justify="right") for name in NUMBERS))
    for trial, summary in found:
        values = (change.partition("=")[2] for change in trial.changes)
        numbers = (
            cut(summary.anls or 0.0, summary.decimals),
            cut(summary.accuracy or 0.0, summary.decimals),
            significant(summary.bytes_total / GIGABYTE),
            epsilon_text(summary.epsilon),
        )
        table.add_row(*map(Text, (trial.name, *values, *numbers)))
    return table
