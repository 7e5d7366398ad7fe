"""The `pfl` command. Heavy libraries are imported by the commands that need them, so that help comes at once."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from evaluator import evaluator_version
from evaluator.contracts import PrivacyRules, SamplingRule, TrackRules
from evaluator.errors import ErrorCode, refuse
from starter_kit.console import REFUSED, complaints, console, progress, refusals
from starter_kit.data.commands import data_app
from starter_kit.engines.flower.commands import flower_app
from starter_kit.privacy.commands import privacy_app
from starter_kit.reporting.comparison import Format
from starter_kit.settings.official_flags import WithOfficialFlags, config_of, given_flags
from starter_kit.site.key_commands import key_app
from starter_kit.site.options import ApiToken, KeyFile, Site, connect

app = typer.Typer(
    name="pfl",
    help="The starter kit of the PFL-DocVQA benchmark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,  # a traceback must not show what clients hold
)
base_app = typer.Typer(help="Base weights that training starts from.", no_args_is_help=True)
app.add_typer(data_app, name="data")
app.add_typer(base_app, name="base")
app.add_typer(key_app, name="key")
app.add_typer(privacy_app, name="privacy")
app.add_typer(flower_app, name="federate")

DATASET = "dataset.json"


class Split(StrEnum):
    TRAIN = "train"
    VALID = "valid"
    TEST = "test"


def _readable(data: Path) -> Path:
    """The data folder as it was named. The one above it, which `pfl data` was given, is a mistake easily made."""
    if not (data / DATASET).exists() and (data / "public" / DATASET).is_file():
        with refusals():
            raise refuse(
                ErrorCode.DATASET_FORMAT,
                where=f"--data {data}",
                expected=f"a data folder, with {DATASET}",
                found=f"a folder of two: {data / 'public'} and the secret test set",
                next_step=f"Say --data {data / 'public'}",
            )
    return data


DataFolder = Annotated[
    Path,
    typer.Option("--data", help="Data folder, such as data/public.", show_default=False, callback=_readable),
]
BaseFolder = Annotated[
    Path, typer.Option("--base", help="Folder of the track's base weights.", show_default=False)
]
RunDirectory = Annotated[Path, typer.Argument(help="Folder that `pfl train` wrote.", show_default=False)]


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
    from starter_kit.weights.pretraining import create_base

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
def token(
    track: Annotated[str, typer.Option(help="The track's name in its address, such as track-2.")] = "track-2",
    site: Site = "",
    token: ApiToken = "",
) -> None:
    """Ask the site for a token for one training run. `pfl train` does it by itself where it knows the site."""
    with refusals():
        run_token = connect(site, token).run_token(track)
    console.print(run_token, highlight=False, soft_wrap=True)


@app.command()
def methods() -> None:
    """List the methods and the configs that come with the kit."""
    from starter_kit.settings.method_list import as_table

    console.print(as_table())
    for line in (
        "Train one:        pfl train CONFIG --data data/public --base base --out save/run",
        "What it computes: docs/methods.md; its settings: docs/settings.md",
    ):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


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

    with refusals():
        files = write_method(name, out, private=private)
    for path in files:
        console.print(str(path), markup=False, highlight=False, soft_wrap=True)
    test, config, proof = out / f"test_{name}.py", out / f"{name}.yaml", out / f"{name}_proof.md"
    told = [
        f"Try it:   python {test}",
        f"Train it: pfl train {config} --data data/public --base base --out save/{name}",
    ]
    if private:
        told.append(f"Prove it: {proof} says what holds now; `pfl submit` takes it as --proof")
    for line in told:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


@app.command(cls=WithOfficialFlags)
def train(
    context: typer.Context,
    data: DataFolder,
    base: BaseFolder,
    out: Annotated[Path, typer.Option("--out", help="Folder to write.", show_default=False)],
    config: Annotated[
        str | None,
        typer.Argument(help="A YAML file, or the name of one of the kit's: `pfl methods` lists them."),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting to change, such as rounds=5; may be given several times."),
    ] = None,
    track: Annotated[str, typer.Option(help="Track of the training record and its run token.")] = "track-2",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that was broken off; name the same settings.")
    ] = False,
    processes: Annotated[
        int, typer.Option(min=1, help="Processes in which clients train, each with a model of its own.")
    ] = 1,
    run_token: Annotated[
        str | None,
        typer.Option(
            envvar="PFL_RUN_TOKEN", help="From `pfl token`; else the site is asked for one, if you name it."
        ),
    ] = None,
    key: KeyFile = None,
    site: Site = "",
    token: ApiToken = "",
) -> None:
    """Train a method. Writes the checkpoint, the communication log, a report and, with privacy, the signed record.

    The files and flags of the competition's kit work as well: -m VT5 --flower --use_dp.
    """
    from starter_kit.settings.configuration import load_settings
    from starter_kit.settings.own_methods import own_file

    with refusals():
        settings = load_settings(
            config_of(context, config), changes or [], flags=given_flags(context), tell=_note
        )
        _check_device(settings.device)
        if not resume:
            _check_unfinished(out)

    # What trains takes seconds to load: mistakes in the settings are told before.
    from starter_kit.engines.processes import in_processes
    from starter_kit.runs.training import in_process
    from starter_kit.runs.training import train as run_training
    from starter_kit.runs.watching import watching
    from starter_kit.site.credentials import key_path, obtain

    with refusals(), _interruptions(out):
        client = connect(site, token) if site and token else None
        with watching(settings.experiment) as watcher:
            run_training(
                settings,
                data=data,
                base=base,
                out=out,
                track=track,
                credentials=lambda: obtain(key_path(key), run_token, track, client, resumed=resume),
                watcher=watcher,
                resume=resume,
                open_engine=in_processes(processes, data=data, base=base) if processes > 1 else in_process,
            )
        if file := own_file(type(settings)):
            file.keep(out)
        told = _outcome(out, settings.rounds)
    for line in told:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


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
    from starter_kit.evaluating import tell
    from starter_kit.runs.folder import RunFolder
    from starter_kit.runs.kept_scores import keep_scores
    from starter_kit.runs.training import evaluate as run_evaluation

    with refusals(), progress("questions") as show:
        path = RunFolder(checkpoint).file(ArtifactKind.CHECKPOINT) if checkpoint.is_dir() else checkpoint
        findings = run_evaluation(path, base=base, data=data, split=split, on_progress=show)
    tell(findings, split)
    if checkpoint.is_dir():
        with refusals():
            keep_scores(checkpoint, findings.result, split.value)


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.", show_default=False)],
    form: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.TABLE,
    group: Annotated[
        bool, typer.Option("--group", help="One row for runs that differ in nothing but their seed.")
    ] = False,
    by_anls: Annotated[bool, typer.Option("--by-anls", help="The highest ANLS first.")] = False,
) -> None:
    """Print runs beside each other: method, ANLS, accuracy, gigabytes and ε."""
    from starter_kit.reporting.comparison import compare as compared

    with refusals():
        comparison = compared(runs, form=form, by_anls=by_anls, group=group)
    if isinstance(comparison, str):
        typer.echo(comparison, nl=False)
    else:
        console.print(comparison)


@app.command()
def report(run: RunDirectory) -> None:
    """Write RUN/report.html anew, from the run's settings and numbers."""
    from starter_kit.reporting.report import write_report

    with refusals():
        path = write_report(run)
    console.print(str(path), markup=False, highlight=False, soft_wrap=True)


@app.command()
def tensorboard(
    run: RunDirectory,
    log_dir: Annotated[
        Path, typer.Option("--log-dir", help="Folder for TensorBoard's files.", show_default=False)
    ],
) -> None:
    """Write the run's rounds for TensorBoard: `tensorboard --logdir DIR` shows them."""
    from starter_kit.reporting.tensorboard import write_events

    with refusals():
        write_events(run, log_dir)
    console.print(str(log_dir), markup=False, highlight=False, soft_wrap=True)


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
    """Run the checks that the workers run, on your own disk, and list everything that they would refuse."""
    from starter_kit.checking import BUDGETS, check_folder, check_record_is_there, check_run
    from starter_kit.runs.folder import RunFolder, budget_of

    folder = RunFolder(run)
    with refusals():
        if track not in ("track-1", "track-2"):
            raise refuse(
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
        raise typer.Exit(REFUSED)


@app.command()
def convert(
    source: Annotated[
        Path,
        typer.Argument(help="A .bin, .ckpt or .pt file, or a folder with a checkpoint.", show_default=False),
    ],
    out: Annotated[
        Path,
        typer.Argument(
            help="Folder to write model.safetensors into, or a .safetensors file.", show_default=False
        ),
    ],
    base: Annotated[
        Path | None, typer.Option(help="Folder of the track's base weights, to check the result against.")
    ] = None,
    allow_network: Annotated[
        bool,
        typer.Option(
            "--allow-network",
            help="Read the file even where its reader can't be cut off. Only if you trust it.",
        ),
    ] = False,
) -> None:
    """Turn a pickled or sharded checkpoint into the one safetensors file that the benchmark takes."""
    from starter_kit.weights.converting import convert as run_conversion

    def tell(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    with refusals():
        run_conversion(source, out, base=base, allow_network=allow_network, tell=tell)


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

    with refusals():
        client = connect(site, token)
        plan = prepare(client, track, runs, proof)
        for public_key in register_keys(client, plan):
            console.print(f"{public_key}: registered as your team's key", highlight=False, soft_wrap=True)
        with progress("uploading, MB") as show:
            submission = send(
                client, plan, title, description, lambda done, total: show(done // 10**6, total // 10**6)
            )
        console.print(f"Submitted: {submission['url']}", highlight=False, soft_wrap=True)
        if wait and not watch(client, submission["id"]):
            raise typer.Exit(1)


def _note(text: str) -> None:
    complaints.print(text, markup=False, highlight=False, soft_wrap=True)


def _check_device(device: str) -> None:
    """Raises `ProblemError` (`E_CONFIGURATION`) where there is no GPU to train on."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise refuse(
            ErrorCode.CONFIGURATION,
            where="device",
            expected="cpu, for torch finds no GPU on this machine",
            found=device,
            next_step="Add --set device=cpu.",
        )


def _unfinished(out: Path) -> tuple[Path, int]:
    """The folder of a run that was broken off, and how many whole rounds it has."""
    from starter_kit.reporting.metrics import METRICS, read_metrics

    folder = out.with_name(f"{out.name}.unfinished")
    return folder, len(read_metrics(folder / METRICS)) if (folder / METRICS).is_file() else 0


def _check_unfinished(out: Path) -> None:
    """Refuses to begin anew where that would delete rounds that were trained."""
    folder, rounds = _unfinished(out)
    if rounds:
        raise refuse(
            ErrorCode.RUN_FOLDER,
            message="A run into this folder was broken off, and would be lost.",
            where=str(folder),
            expected="nothing there, or --resume",
            found=f"{_rounds(rounds)}, trained",
            next_step="Add --resume to go on with it; or delete that folder, or name another --out, to begin anew.",
        )


@contextmanager
def _interruptions(out: Path) -> Iterator[None]:
    """After Ctrl-C it is said what is there and how it goes on."""
    try:
        yield
    except KeyboardInterrupt:
        folder, rounds = _unfinished(out)
        told = "Broken off."
        if rounds:
            told += f" The same command with --resume goes on after round {rounds}, from {folder}"
        complaints.print(told, markup=False, highlight=False, soft_wrap=True)
        raise


def _rounds(count: int) -> str:
    return f"{count} {'round' if count == 1 else 'rounds'}"


def _outcome(run: Path, rounds: int) -> list[str]:
    """A finished run in a few lines; `rounds` is how many its settings name."""
    from starter_kit.reporting.metrics import SUMMARY, read_summary
    from starter_kit.reporting.rounding import epsilon_text, size_text

    summary = read_summary(run / SUMMARY)
    told = f"{run}: trained with {summary.method}, {_rounds(summary.rounds)}, {size_text(summary.bytes_total)} sent"
    if summary.epsilon is not None:
        told += f", ε = {epsilon_text(summary.epsilon)} for one {summary.unit}, δ = {summary.delta:g}"
    lines = [told]
    if summary.budget is not None and summary.rounds < rounds:
        lines.append(
            f"Fewer rounds than the {rounds} of the settings: another would exceed ε = {summary.budget:g}"
        )
    return [*lines, f"{run / 'report.html'} shows it; score it with `pfl evaluate {run}`"]


def main() -> None:
    """Entry point of `pfl`."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
