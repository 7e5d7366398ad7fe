"""What the verbs of `pfl data` have in common: their options, and how a pair of data folders is written and counted."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer
from click.core import ParameterSource
from rich.table import Column, Table
from rich.text import Text

from evaluator.errors import ErrorCode, ProblemError, shorten
from evaluator.messages.progress import OnProgress
from starter_kit.commands.options import one_data_folder, wrong_option
from starter_kit.console import console, log, print_lines, progress

if TYPE_CHECKING:
    from starter_kit.data.summary import ImportSummary


def _data_source(folder: Path) -> Path:
    return one_data_folder(folder)


Out = Annotated[Path, typer.Argument(help="Folder to write. If the command fails, nothing is written.")]
Source = Annotated[Path, typer.Argument(help="Folder to read.")]
DataSource = Annotated[Path, typer.Argument(help="Data folder to read.", callback=_data_source)]
Force = Annotated[bool, typer.Option("--force", help="Replace data written earlier by this command.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same data.")]
SeedFile = Annotated[
    Path | None,
    typer.Option(
        help="File with a secret seed, instead of --seed. If the file doesn't exist, a seed is drawn and written there."
    ),
]
Clients = Annotated[
    int, typer.Option(min=1, max=1000, help="Number of clients that share the training providers.")
]
PartitionRule = Annotated[
    str,
    typer.Option(
        "--partition",
        metavar="RULE",
        help="How the training providers are divided among the clients. iid: at random, in equal numbers. size: with "
        "equal numbers of documents. dirichlet:0.5: at random, with shares of the documents drawn from a Dirichlet "
        "distribution; the lower its parameter, the more uneven.",
    ),
]
PrivatePart = Annotated[
    float,
    typer.Option(
        "--private",
        min=0,
        max=0.99,
        help="Approximate fraction of test questions whose scores stay hidden until the organizers reveal "
        "them. 0: none.",
    ),
]
DEFAULT_PRIVATE = 0.5
TEST = "test"
COUNTS = ("pages", "questions", "words a page", "providers", "of them in training", "largest provider")


def seed_of(ctx: typer.Context, seed: int, seed_file: Path | None) -> int:
    """Return the seed of a data set: the number that was given, or the one in the file."""
    from starter_kit.data.secret_seed import secret_seed

    if seed_file is None:
        return seed
    reject_given(ctx, "--seed-file", "seed")
    number, is_new = secret_seed(seed_file)
    log(
        f"{seed_file}: {'a new secret seed' if is_new else 'the secret seed'}. "
        "Anyone who has this file can make the test set."
    )
    return number


def reject_given(ctx: typer.Context, option: str, *others: str) -> None:
    """Reject options that say nothing beside `option`."""
    for name in others:
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            flag = f"--{name.replace('_', '-')}"
            raise wrong_option(flag, f"no {flag} with {option}", ctx.params[name], next_step="Leave one out.")


class _WritePair(Protocol):
    """Writes a public data folder and one for the organizers alone."""

    def __call__(self, public: Path, other: Path, /, *, on_progress: OnProgress) -> "ImportSummary": ...


def write_pair(
    out: Path, force: bool, label: str, write: _WritePair, beside: str = "", private: float = 0.0
) -> None:
    """Write two data folders into `out`, the organizers' being `beside` or else `secret`; print what they hold.

    The test set has a private part of about the fraction `private`, unless that is 0.
    """
    from starter_kit.data.folders import PUBLIC, SECRET, atomic_folder

    beside = beside or SECRET
    with (
        progress(label) as on_progress,
        atomic_folder(out, force=force, entries=frozenset({PUBLIC, beside})) as fresh,
    ):
        summary = write(fresh / PUBLIC, fresh / beside, on_progress=on_progress)
        if private:
            log(_private_part(fresh / beside, private))
    print_summary(summary)


def _private_part(folder: Path, private: float) -> str:
    """Give a new test set a private part, and return what became of it, as a sentence."""
    # The competition's files without the test file make no test set.
    if not (folder / TEST).exists():
        return "There is no test set, so it has no private part."
    try:
        split_test_set(folder, private, TEST)
    except ProblemError as error:
        return (
            f"The test set has no private part: {error.problem.expected} are needed, {error.problem.found}."
        )
    return (
        f"About {private:.0%} of the test questions are private, as listed in {folder.name}/split.json. "
        "To keep none private, use --private 0."
    )


def split_test_set(folder: Path, private: float, on: str) -> list[str]:
    """Draw the private part of a test set and write it; return how many questions each part has, in lines."""
    from evaluator.docvqa.dataset import Dataset
    from evaluator.scoring.groups import MIN_CLUSTERS
    from evaluator.scoring.split import (
        FILE,
        Split,
        clusters_in,
        owners_of_questions,
        private_questions,
        write_split,
    )

    drawn, dataset = Split.drawn(private), Dataset(folder, on)
    sides = private_questions(dataset, drawn)
    clusters = clusters_in(owners_of_questions(dataset), sides)
    try:
        write_split(folder, drawn)
    except FileExistsError:
        raise ProblemError.of(
            ErrorCode.DATASET_FOLDER,
            where=str(folder / FILE),
            expected="a test set that isn't split yet",
            found="an existing split",
            next_step="Scores on two splits can't be compared. If none was published yet, remove the file.",
        ) from None
    lines = []
    for name, is_private, providers in zip(("public", "private"), (False, True), clusters, strict=True):
        lines.append(f"{name}: {sides.count(is_private)} questions of {providers} providers")
        if providers < MIN_CLUSTERS:
            lines.append(f"  Intervals require at least {MIN_CLUSTERS} providers, so they will be 0 to 1.")
    return [*lines, f"SHA-256 {drawn.sha256}"]


@contextmanager
def settings_that_fit() -> Iterator[None]:
    """Reject options that don't go together."""
    from pydantic import ValidationError

    try:
        yield
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        given = detail["input"]
        if detail["loc"]:
            names, found = [str(detail["loc"][0])], given
        else:
            names = [name for name in given if name != "seed"]
            found = ", ".join(f"{name.replace('_', '-')} {given[name]}" for name in names)
        raise wrong_option(
            ", ".join(f"--{name.replace('_', '-')}" for name in names),
            detail["msg"].removeprefix("Value error, ").removeprefix("Input should be "),
            found,
            next_step="Change these options.",
        ) from error


def print_summary(summary: "ImportSummary") -> None:
    counts = (Column(name, justify="right") for name in COUNTS)
    table = Table(Column("split", no_wrap=True), *counts, title=Text(summary.info.name))
    for split, tally in summary.splits.items():
        table.add_row(
            Text(split),
            str(tally.pages),
            str(tally.questions),
            f"{tally.words / max(tally.pages, 1):.0f}",
            str(len(tally.pages_by_provider)),
            str(summary.seen_providers(split)) if summary.clients else "unknown",
            f"{(most := max(tally.pages_by_provider.values(), default=0))} page{'s' * (most != 1)}",
        )
    console.print(table)
    if count := len(summary.clients):
        fewest, most = min(summary.clients.values()), max(summary.clients.values())
        each = f"{fewest} to {most} providers" if fewest < most else f"{most} provider{'s' * (most > 1)}"
        print_lines(f"{count} client{'s' * (count > 1)} with {each}{' each' * (count > 1)}.")
    if summary.info.partition:
        print_lines(f"Partition: {summary.info.partition}.")
    if summary.findings.counts:
        console.print(_findings_table(summary))


def _findings_table(summary: "ImportSummary") -> Table:
    table = Table(
        "problem, and how it was handled", "examples", Column("times", justify="right"), title="Findings"
    )
    for finding, count in summary.findings.counts.items():
        places = "; ".join(summary.findings.examples[finding])
        table.add_row(finding.value, Text(shorten(places)), str(count))
    return table
