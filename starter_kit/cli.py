"""The `pfl` command. Heavy libraries are imported by the commands that need them, so that help comes at once."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.table import Table

from evaluator import evaluator_version
from evaluator.errors import ErrorCode, ProblemError, refuse
from starter_kit.console import REFUSED, complain, console, progress, refusals
from starter_kit.data.commands import data_app

app = typer.Typer(
    name="pfl",
    help="The starter kit of the PFL-DocVQA benchmark.",
    no_args_is_help=True,
    add_completion=False,
)
base_app = typer.Typer(help="Base weights that training starts from.", no_args_is_help=True)
privacy_app = typer.Typer(help="ε and noise, by the benchmark's own accountants.", no_args_is_help=True)
app.add_typer(data_app, name="data")
app.add_typer(base_app, name="base")
app.add_typer(privacy_app, name="privacy")

Result = TypeVar("Result")

DELTA = 1e-5  # the competition's

DataFolder = Annotated[
    Path, typer.Option("--data", help="Data folder, such as data/public.", show_default=False)
]
BaseFolder = Annotated[
    Path, typer.Option("--base", help="Folder of the track's base weights.", show_default=False)
]
RunDirectory = Annotated[Path, typer.Argument(help="Folder that `pfl train` wrote.", show_default=False)]
SamplingRate = Annotated[float, typer.Option(help="A provider's chance to take part in a round.")]
Rounds = Annotated[int, typer.Option(min=1, help="Number of rounds.")]
Delta = Annotated[float, typer.Option(help="δ.")]


@app.command()
def version() -> None:
    """Print the version; scores are stamped with it."""
    console.print(evaluator_version())


@base_app.command()
def create(
    out: Annotated[Path, typer.Argument(help="Folder to write.")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same weights.")] = 7,
    vocab_size: Annotated[int, typer.Option(min=300, help="Tokens of the tokenizer.")] = 512,
) -> None:
    """Make a tiny VT5 and its tokenizer for trials on a CPU, pre-trained on made-up public cards."""
    from starter_kit.pretraining import create_base

    with refusals():
        if out.exists():
            raise refuse(
                ErrorCode.RUN_FOLDER, where=str(out), expected="a new folder", found="an existing one"
            )
        unfinished = out.with_name(f"{out.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        with progress("pre-training, steps") as show:
            loss = create_base(unfinished, seed=seed, vocab_size=vocab_size, on_progress=show)
        unfinished.rename(out)
    console.print(f"{out}: a tiny VT5, pre-trained to a loss of {loss:.2f} on public cards", soft_wrap=True)


@app.command()
def train(
    config: Annotated[
        str, typer.Argument(help="A YAML file, or the name of a baseline: fedavg, fl-provider-dp.")
    ],
    data: DataFolder,
    base: BaseFolder,
    out: Annotated[Path, typer.Option("--out", help="Folder to write.", show_default=False)],
    changes: Annotated[list[str] | None, typer.Option("--set", help="A setting to change: rounds=5.")] = None,
    track: Annotated[str, typer.Option(help="Track to name in the training record.")] = "track-2",
) -> None:
    """Train a baseline. Writes the checkpoint, the communication log and, with privacy, the training record."""
    from starter_kit.configuration import load_settings
    from starter_kit.training import train as run_training

    with refusals():
        settings = load_settings(config, changes or [])
        with progress(settings.experiment) as show:
            run_training(
                settings,
                data=data,
                base=base,
                out=out,
                track=track,
                on_progress=lambda _, done, total: show(done, total),
            )
    console.print(f"{out}: trained with {settings.method}, {settings.rounds} rounds", soft_wrap=True)


@app.command()
def evaluate(
    checkpoint: Annotated[
        Path, typer.Argument(help="A safetensors file, or the folder that `pfl train` wrote.")
    ],
    base: BaseFolder,
    data: DataFolder,
    split: Annotated[str, typer.Option(help="train, valid or test.")] = "valid",
) -> None:
    """Score a checkpoint with the evaluator's own code."""
    from starter_kit.training import evaluate as run_evaluation

    path = checkpoint / "model.safetensors" if checkpoint.is_dir() else checkpoint
    with refusals(), progress("questions") as show:
        result = run_evaluation(path, base=base, data=data, split=split, on_progress=show)
    console.print(
        f"ANLS {result.anls:.4f}, accuracy {result.accuracy:.4f} on {result.questions} questions ({split})"
    )


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
    delta: Delta = DELTA,
) -> None:
    """Run the checks that the workers run, on your own disk, and list everything that they would refuse."""
    from evaluator.contracts import AccountingResult, CommunicationResult, PrivacyRules, Step, TrackRules
    from evaluator.pipeline import Bench, run_step
    from starter_kit.run_folder import RunFolder

    folder = RunFolder(run)
    with refusals():
        privacy = None
        if track == "track-2":
            epsilon = budget or folder.budget([1, 4, 8], max_rounds=max_rounds)
            privacy = PrivacyRules(epsilon=epsilon, delta=delta)
        elif track != "track-1":
            raise refuse(ErrorCode.CONFIGURATION, where="--track", expected="track-1 or track-2", found=track)
        rules = TrackRules(
            reference="local", test_set="local", clients=clients, max_rounds=max_rounds, privacy=privacy
        )
    bench = Bench(folder.files(), rules, reference=base)
    refused = False
    for step in [step for step in rules.steps() if step is not Step.SCORING]:
        try:
            with progress(step) as show:
                result = run_step(step, bench, show)
        except ProblemError as error:
            refused = True
            console.print(f"{step}: refused")
            complain(error.problems)
            continue
        detail = ""
        if isinstance(result, CommunicationResult):
            detail = f", {result.bytes_total:,} bytes in {result.rounds} rounds"
        elif isinstance(result, AccountingResult):
            within = "within" if result.within_budget else "ABOVE"
            detail = f", ε = {result.epsilon:.4f} (RDP {result.epsilon_rdp:.4f}), {within} the budget of {epsilon:g}"
            refused |= not result.within_budget
        console.print(f"{step}: passed{detail}", highlight=False)
    if refused:
        raise typer.Exit(REFUSED)


@privacy_app.command()
def epsilon(
    record: Annotated[Path | None, typer.Argument(help="A training record; instead of the options.")] = None,
    sampling_rate: SamplingRate = 1.0,
    noise_multiplier: Annotated[
        float | None, typer.Option(help="σ: noise standard deviation over clip norm.")
    ] = None,
    rounds: Rounds = 1,
    delta: Delta = DELTA,
) -> None:
    """ε of a run: of its training record, or of equal rounds of the given noise."""
    from evaluator.accounting import pld, rdp
    from evaluator.accounting.mechanisms import PoissonGaussian
    from evaluator.accounting.rules import mechanisms
    from evaluator.records import read_record

    with refusals():
        if record:
            composition = mechanisms(read_record(record, max_rounds=1_000_000))
        elif noise_multiplier:
            composition = [_within_range(lambda: PoissonGaussian(sampling_rate, noise_multiplier, rounds))]
        else:
            raise refuse(
                ErrorCode.CONFIGURATION, where="--noise-multiplier", expected="σ, or a training record"
            )
        table = Table("accountant", "ε", title=f"δ = {delta:g}")
        table.add_row("PLD (official)", f"{_within_range(lambda: pld.epsilon(composition, delta)):.6f}")
        table.add_row("RDP", f"{rdp.epsilon(composition, delta):.6f}")
    console.print(table)


@privacy_app.command()
def noise(
    target_epsilon: Annotated[float, typer.Argument(help="ε that the run must not exceed.")],
    sampling_rate: SamplingRate = 1.0,
    rounds: Rounds = 1,
    delta: Delta = DELTA,
) -> None:
    """The smallest noise multiplier σ whose ε doesn't exceed the target."""
    from evaluator.accounting import calibration

    with refusals():
        sigma = _within_range(
            lambda: calibration.noise_multiplier(target_epsilon, delta, sampling_rate, rounds)
        )
    console.print(f"{sigma:.6f}", highlight=False)


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
    site: Annotated[str, typer.Option(envvar="PFL_SITE", help="The site's address.")] = "",
    token: Annotated[
        str, typer.Option(envvar="PFL_TOKEN", help="From your account page.", show_envvar=True)
    ] = "",
) -> None:
    """Upload runs and submit them. After a broken connection, the same command continues where it stopped."""
    from starter_kit.client import SiteClient
    from starter_kit.submitting import prepare, send, watch

    with refusals():
        for name, value in (("--site or PFL_SITE", site), ("--token or PFL_TOKEN", token)):
            if not value:
                raise refuse(ErrorCode.CONFIGURATION, where=name, expected="a value", found="nothing")
        client = SiteClient(site, token)
        plan = prepare(client, track, runs, proof)
        with progress("uploading, MB") as show:
            submission = send(
                client, plan, title, description, lambda done, total: show(done // 10**6, total // 10**6)
            )
        console.print(f"Submitted: {submission['url']}", highlight=False, soft_wrap=True)
        if wait and not watch(client, submission["id"]):
            raise typer.Exit(1)


def _within_range(compute: Callable[[], Result]) -> Result:
    """`compute()`, with a number that is out of range told as a problem of the command line."""
    try:
        return compute()
    except ValueError as error:
        raise refuse(ErrorCode.CONFIGURATION, where="the options", found=error) from error


def main() -> None:
    """Entry point of `pfl`."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
