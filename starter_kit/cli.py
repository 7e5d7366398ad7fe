"""The `pfl` command. Heavy libraries are imported by the commands that need them, so that help comes at once."""

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from evaluator.contracts import PrivacyRules, TrackRules, evaluator_version
from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.scenario import SamplingRule
from starter_kit.console import REJECTED, console, progress, rejections, say
from starter_kit.data.commands import data_app
from starter_kit.engines.flower.commands import flower_app
from starter_kit.options import BaseFolder, DataFolder, RunDirectory
from starter_kit.privacy.commands import privacy_app
from starter_kit.reporting.commands import compare, report, tensorboard
from starter_kit.runs.commands import train
from starter_kit.settings.official_flags import WithOfficialFlags
from starter_kit.site.key_commands import key_app
from starter_kit.site.options import ApiToken, Site, connect
from starter_kit.weights.commands import base_app, convert

app = typer.Typer(
    name="pfl",
    help="The starter kit of the PFL-DocVQA benchmark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,  # a traceback must not show what clients hold
)
app.add_typer(data_app, name="data")
app.add_typer(base_app, name="base")
app.add_typer(key_app, name="key")
app.add_typer(privacy_app, name="privacy")
app.add_typer(flower_app, name="federate")


class Split(StrEnum):
    TRAIN = "train"
    VALID = "valid"
    TEST = "test"


@app.command()
def version() -> None:
    """Print the version; scores are stamped with it."""
    console.print(evaluator_version())


@app.command()
def token(
    track: Annotated[str, typer.Option(help="The track's name in its address, such as track-2.")] = "track-2",
    site: Site = "",
    token: ApiToken = "",
) -> None:
    """Ask the site for a token for one training run. `pfl train` does it by itself where it knows the site."""
    with rejections():
        run_token = connect(site, token).run_token(track)
    say(run_token)


@app.command()
def methods() -> None:
    """List the methods and the configs that come with the kit."""
    from starter_kit.settings.method_list import as_table

    console.print(as_table())
    say(
        "Train one:        pfl train CONFIG --data data/public --base base --out save/run",
        "What it computes: docs/methods.md; its settings: docs/settings.md",
    )


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Name of the method, such as my_method.", show_default=False)],
    private: Annotated[
        bool, typer.Option("--private", help="Begin with provider-level privacy, and with its proof.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", help="Folder to write into.")] = Path(),
) -> None:
    """Begin a method of your own: a file that works, its config and its test. Nothing is overwritten."""
    from starter_kit.scaffolding.writing import write_method

    with rejections():
        files = write_method(name, out, private=private)
    say(*files)
    test, config, proof = out / f"test_{name}.py", out / f"{name}.yaml", out / f"{name}_proof.md"
    told = [
        f"Try it:   python {test}",
        f"Train it: pfl train {config} --data data/public --base base --out save/{name}",
    ]
    if private:
        told.append(f"Prove it: {proof} says what holds now; `pfl submit` takes it as --proof")
    say(*told)


app.command(cls=WithOfficialFlags)(train)


@app.command()
def evaluate(
    checkpoint: Annotated[
        Path, typer.Argument(help="A safetensors file, or the folder that `pfl train` wrote.")
    ],
    base: BaseFolder,
    data: DataFolder,
    split: Annotated[Split, typer.Option(help="Which questions of the data folder.")] = Split.VALID,
) -> None:
    """Score a checkpoint with the evaluator's own code. A run folder keeps the score, for its report and `compare`."""
    from evaluator.contracts import ArtifactKind
    from starter_kit.evaluating import evaluate as run_evaluation
    from starter_kit.evaluating import tell
    from starter_kit.runs.folder import RunFolder
    from starter_kit.runs.results import keep_scores

    with rejections(), progress("questions") as show:
        path = RunFolder(checkpoint).file(ArtifactKind.CHECKPOINT) if checkpoint.is_dir() else checkpoint
        findings = run_evaluation(path, base=base, data=data, split=split, on_progress=show)
    tell(findings, split)
    if checkpoint.is_dir():
        with rejections():
            keep_scores(checkpoint, findings.result, split.value)


app.command()(compare)
app.command()(report)
app.command()(tensorboard)


@app.command()
def check(
    run: RunDirectory,
    base: BaseFolder,
    track: Annotated[str, typer.Option(help="track-1 or track-2: what is checked.")] = "track-1",
    budget: Annotated[
        float | None,
        typer.Option(help="ε of the board; by default the smallest that the record's claim fits."),
    ] = None,
    clients: Annotated[int, typer.Option(min=1, help="Clients of the track.")] = 10,
    max_rounds: Annotated[int, typer.Option(min=1, help="Rounds that the track allows.")] = 10_000,
    delta: Annotated[float, typer.Option(help="δ of the track.")] = 1e-5,
    sampling_rule: Annotated[
        SamplingRule, typer.Option(help="How the track accounts two stages of sampling.")
    ] = SamplingRule.TWO_STAGE,
    trainable: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="Names of tensors that may differ from the base weights, such as '*.layer_norm.weight'; may be "
            "given several times, by default all may.",
        ),
    ] = None,
) -> None:
    """Run the checks that the workers run, on your own disk, and list everything that they would reject."""
    from starter_kit.checking import BUDGETS, check_folder, check_record_is_there, check_run
    from starter_kit.runs.folder import RunFolder, budget_of

    folder = RunFolder(run)
    with rejections():
        if track not in ("track-1", "track-2"):
            raise ProblemError.of(
                ErrorCode.CONFIGURATION,
                where="--track",
                expected="track-1 or track-2",
                found=track,
                next_step="Name the track whose rules are nearest, and the options for what differs.",
            )
        check_folder(folder)
        privacy = None
        if track == "track-2":
            check_record_is_there(folder)
            epsilon = budget or budget_of(folder.record(max_rounds=max_rounds), BUDGETS)
            privacy = PrivacyRules(epsilon=epsilon, delta=delta, sampling_rule=sampling_rule)
        rules = TrackRules(
            reference="local",
            test_set="local",
            trainable=trainable or [],
            clients=clients,
            max_rounds=max_rounds,
            privacy=privacy,
        )
        accepted = check_run(folder, rules, base)
    if not accepted:
        raise typer.Exit(REJECTED)


app.command()(convert)


@app.command()
def submit(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders: one in track 1, up to one a budget in track 2.")
    ],
    track: Annotated[
        str, typer.Option(help="The track's name in its address, such as track-1.", show_default=False)
    ],
    title: Annotated[str, typer.Option(help="The method's name on the leaderboard.", show_default=False)],
    description: Annotated[str, typer.Option(help="Markdown.")] = "",
    proof: Annotated[Path | None, typer.Option(help="Privacy proof: PDF, Markdown or notebook.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the evaluation until it ends.")] = False,
    site: Site = "",
    token: ApiToken = "",
) -> None:
    """Upload runs and submit them. After a broken connection, the same command continues where it stopped."""
    from starter_kit.submitting import prepare, register_keys, send, watch

    with rejections():
        client = connect(site, token)
        plan = prepare(client, track, runs, proof)
        for public_key in register_keys(client, plan):
            say(f"{public_key}: registered as your team's key")
        with progress("uploading, MB") as show:
            submission = send(
                client, plan, title, description, lambda done, total: show(done // 10**6, total // 10**6)
            )
        say(f"Submitted: {submission['url']}")
        if wait and not watch(client, submission["id"]):
            raise typer.Exit(1)


def main() -> None:
    """Entry point of `pfl`."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
