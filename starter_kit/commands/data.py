"""`pfl data`: download, make, import, export and inspect data sets."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import click
import typer
from rich.table import Column, Table
from rich.text import Text

from evaluator.errors import ErrorCode, ProblemError, shorten
from evaluator.progress import OnProgress
from starter_kit.commands.app import VerbGroup, new_app
from starter_kit.commands.data_download import download
from starter_kit.commands.options import one_data_folder, require_number, wrong_option
from starter_kit.console import (
    EXIT_REJECTED,
    console,
    log,
    print_lines,
    print_problems,
    progress,
)
from starter_kit.disk import is_full

if TYPE_CHECKING:
    from starter_kit.data.summary import ImportSummary


class DataGroup(VerbGroup):
    """The verbs of data, which report a folder without permission as problems."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the verb."""
        try:
            return super().invoke(ctx)
        except OSError as error:
            if is_full(error):
                raise
            raise ProblemError.of(
                ErrorCode.DATASET_FOLDER, str(error.filename or ""), found=error.strerror or error
            ) from error


app = new_app("Download, make, import, export and inspect data sets.", cls=DataGroup)
app.command()(download)


def _data_source(folder: Path) -> Path:
    return one_data_folder(folder)


Out = Annotated[Path, typer.Argument(help="Folder to write. If the command fails, nothing is written.")]
Source = Annotated[Path, typer.Argument(help="Folder to read.")]
DataSource = Annotated[Path, typer.Argument(help="Data folder to read.", callback=_data_source)]
Force = Annotated[bool, typer.Option("--force", help="Replace data written earlier by this command.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same data.")]
Clients = Annotated[
    int, typer.Option(min=1, max=1000, help="Number of clients that share the training providers.")
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
# As many new forms of each provider as the red-team data has pages, about.
RED_FORMS = 6
COUNTS = ("pages", "questions", "words a page", "providers", "of them in training", "largest provider")


@app.command()
def synthetic(
    out: Out,
    seed: Seed = 7,
    clients: Clients = 10,
    train_providers: Annotated[int, typer.Option(help="Providers to train on.")] = 400,
    train_pages: Annotated[int, typer.Option(help="Pages to train on, unevenly distributed.")] = 900,
    valid_pages: Annotated[
        int, typer.Option(help="Pages to validate on, half of them from unseen providers.")
    ] = 60,
    test_pages: Annotated[
        int, typer.Option(help="Secret test pages, half of them from unseen providers.")
    ] = 120,
    private: PrivatePart = DEFAULT_PRIVATE,
    force: Force = False,
) -> None:
    """Generate invoices from made-up providers in OUT/public and OUT/secret."""
    from starter_kit.data.synthetic import SyntheticSettings, generate

    with _settings_that_fit():
        settings = SyntheticSettings(
            seed=seed,
            clients=clients,
            train_providers=train_providers,
            train_pages=train_pages,
            valid_pages=valid_pages,
            test_pages=test_pages,
        )
    _write(out, force, "Drawing pages", partial(generate, settings=settings), private=private)


@app.command()
def forms(
    out: Out,
    seed: Seed = 7,
    clients: Clients = 10,
    providers: Annotated[
        int, typer.Option(help="Providers to train on, with two forms each unless --skewed.")
    ] = 800,
    valid_forms: Annotated[
        int, typer.Option(help="Forms to validate on, half of them from unseen providers.")
    ] = 200,
    test_forms: Annotated[
        int, typer.Option(help="Secret test forms, half of them from unseen providers.")
    ] = 600,
    red_providers: Annotated[
        int,
        typer.Option(
            min=0,
            help="Number of training providers in the splits red and red-trained, which are for attacks; as "
            "many other providers are added. 0: none.",
        ),
    ] = 0,
    skewed: Annotated[
        bool,
        typer.Option(
            "--skewed",
            help="Print each provider's name, email address and tax number on all of its forms, and make providers and "
            "clients as uneven as the competition's.",
        ),
    ] = False,
    private: PrivatePart = DEFAULT_PRIVATE,
    force: Force = False,
) -> None:
    """Generate forms from made-up providers in OUT/public and OUT/secret."""
    from starter_kit.data.forms import FormSettings, SkewedSettings, generate, generate_skewed
    from starter_kit.data.forms.generation import write_red_splits

    sizes = {
        "seed": seed,
        "clients": clients,
        "providers": providers,
        "valid_forms": valid_forms,
        "test_forms": test_forms,
    }
    if skewed:
        if red_providers:
            raise wrong_option(
                "--red-providers", "0 with --skewed, whose test split serves for attacks", red_providers
            )
        with _settings_that_fit():
            uneven = SkewedSettings.model_validate(sizes)
        _write(out, force, "Drawing forms", partial(generate_skewed, settings=uneven), private=private)
        return
    with _settings_that_fit():
        settings = FormSettings.model_validate(sizes)
    if red_providers > providers:
        raise wrong_option(
            "--red-providers", f"at most {providers}, as many as there are training providers", red_providers
        )

    def write(public: Path, secret: Path, on_progress: OnProgress) -> "ImportSummary":
        summary = generate(public, secret, settings, on_progress)
        if red_providers:
            summary.splits |= write_red_splits(secret, settings, providers=red_providers, forms=RED_FORMS)
        return summary

    _write(out, force, "Drawing forms", write, private=private)


@app.command()
def receipts(
    source: Source,
    out: Out,
    seed: Seed = 7,
    clients: Clients = 10,
    private: PrivatePart = DEFAULT_PRIVATE,
    force: Force = False,
) -> None:
    """Import receipts in SROIE layout (SOURCE/img, box, key) into OUT/public and OUT/secret."""
    from starter_kit.data.receipts import ReceiptSettings, import_receipts

    settings = ReceiptSettings(seed=seed, clients=clients)
    _write(
        out, force, "Importing images", partial(import_receipts, source, settings=settings), private=private
    )


@app.command()
def imdb(
    source: Source,
    out: Out,
    images: Annotated[Path | None, typer.Option(help="Page images, if not in SOURCE/images.")] = None,
    private: PrivatePart = DEFAULT_PRIVATE,
    force: Force = False,
) -> None:
    """Convert the competition's imdb files into OUT/public and, if the test file is there, OUT/secret.

    The documents for attacks, red_test.npy, become the split red of OUT/public.
    """
    from starter_kit.data.imdb_import import convert_imdb

    _write(out, force, "Importing images", partial(convert_imdb, source, images=images), private=private)


@app.command()
def parquet(source: Source, out: Out, private: PrivatePart = DEFAULT_PRIVATE, force: Force = False) -> None:
    """Convert Parquet files in the layout of `export --format parquet` into OUT/public and OUT/secret."""
    from starter_kit.data.parquet_files import import_parquet

    _write(out, force, "Importing pages", partial(import_parquet, source), private=private)


class Layout(StrEnum):
    """The layouts that a data folder is exported to."""

    IMDB = "imdb"
    PARQUET = "parquet"


@app.command()
def export(
    folder: Source,
    out: Out,
    layout: Annotated[
        Layout,
        typer.Option("--format", help="For the competition's own kit, or for Hugging Face's datasets."),
    ] = Layout.IMDB,
    force: Force = False,
) -> None:
    """Export the data folder FOLDER as imdb files for the competition's kit, or as Parquet files for `datasets`."""
    from starter_kit.data.folders import atomic_folder

    entries = {Layout.IMDB: {"imdb", "images"}, Layout.PARQUET: {"data", "README.md"}}
    with (
        progress("Exporting pages") as on_progress,
        atomic_folder(out, force=force, entries=frozenset(entries[layout])) as fresh,
    ):
        if layout is Layout.PARQUET:
            from starter_kit.data.parquet_files import export_parquet

            summary = export_parquet(folder, fresh, on_progress)
        else:
            from starter_kit.data.imdb_export import export_imdb

            summary = export_imdb(folder, fresh, on_progress)
    _print_summary(summary)


@app.command()
def canaries(
    source: Source,
    out: Out,
    count: Annotated[
        int,
        typer.Option(min=100, max=1000, help="Number of canaries; secret coins release about half of them."),
    ] = 400,
    pages: Annotated[int, typer.Option(min=1, max=20, help="Pages per canary.")] = 4,
    force: Force = False,
) -> None:
    """Copy the data folder SOURCE to OUT/public with canaries among its training providers; the coins go to OUT/escrow.

    Anyone who has OUT/escrow can pass every audit, so only the organizers should keep it. `pfl leakage`
    audits a run with it.
    """
    from starter_kit.data.canaries import ESCROW, CanarySettings, add_canaries

    settings = CanarySettings(canaries=count, pages=pages)
    _write(out, force, "Drawing canaries", partial(add_canaries, source, settings=settings), beside=ESCROW)


@app.command()
def split(
    folder: Source,
    private: Annotated[
        float, typer.Option(min=0.01, max=0.99, help="Approximate fraction of private questions.")
    ],
    on: Annotated[str, typer.Option(help="The split of the data folder used as the test set.")] = "test",
) -> None:
    """Split the secret test set FOLDER into a public and a private part (for organizers).

    Writes FOLDER/split.json with a fresh secret salt. Keep this file as secret as the test set; every worker
    needs the same file.
    """
    require_number("--private", private, below=1)
    print_lines(*_split(folder, private, on))


@app.command()
def inspect(
    folder: DataSource,
    published: Annotated[
        bool,
        typer.Option(
            "--published", help="Compare the counts with the published ones of the competition's data."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
    plots: Annotated[
        Path | None, typer.Option(help="A folder for plots of documents by provider and questions by key.")
    ] = None,
) -> None:
    """Validate the data folder FOLDER and count its contents, by split, client and question type."""
    from starter_kit.data.inspection import differences_from_published, inspect_folder

    with progress("Opening images") as on_progress:
        summary, problems = inspect_folder(folder, on_progress)
    if published:
        problems += differences_from_published(summary)
    if as_json:
        console.print_json(data=_counts(summary))
    else:
        _print_summary(summary)
        _print_parts(summary, published)
        _print_documents(summary)
    if plots:
        from starter_kit.reporting.data_plots import write_data_plots

        for path in write_data_plots(plots, summary.splits):
            log(f"{path}: written")
    if problems:
        print_problems(problems)
        raise typer.Exit(EXIT_REJECTED)


@app.command()
def manifest(folder: DataSource) -> None:
    """Print the hash of the data manifest of FOLDER: the training documents of every client's providers.

    Everyone with the organizers' data gets the same hash. Organizers set it in the admin, under the track's
    privacy accounting, and publish it with the data. `pfl train` writes it to the annex, which only
    organizers can read.
    """
    from evaluator.docvqa.dataset import Dataset
    from evaluator.docvqa.manifest import manifest_sha256

    sha256 = manifest_sha256(Dataset(folder, "train"))
    print_lines(sha256)


class _WritePair(Protocol):
    """Writes a public data folder and one for the organizers alone."""

    def __call__(self, public: Path, other: Path, /, *, on_progress: OnProgress) -> "ImportSummary": ...


def _write(
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
    _print_summary(summary)


def _private_part(folder: Path, private: float) -> str:
    """Give a new test set a private part, and return what became of it, as a sentence."""
    # The competition's files without the test file make no test set.
    if not (folder / TEST).exists():
        return "There is no test set, so it has no private part."
    try:
        _split(folder, private, TEST)
    except ProblemError as error:
        return (
            f"The test set has no private part: {error.problem.expected} are needed, {error.problem.found}."
        )
    return (
        f"About {private:.0%} of the test questions are private, as listed in {folder.name}/split.json. "
        "To keep none private, use --private 0."
    )


def _split(folder: Path, private: float, on: str) -> list[str]:
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
            lines.append(f"  Intervals require at least {MIN_CLUSTERS} providers, so there will be none.")
    return [*lines, f"SHA-256 {drawn.sha256}"]


@contextmanager
def _settings_that_fit() -> Iterator[None]:
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


def _print_summary(summary: "ImportSummary") -> None:
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
            f"{max(tally.pages_by_provider.values(), default=0)} pages",
        )
    console.print(table)
    if summary.clients:
        fewest, most = min(summary.clients.values()), max(summary.clients.values())
        each = f"{fewest} to {most} providers" if fewest < most else f"{most} provider{'s' * (most > 1)}"
        print_lines(f"{len(summary.clients)} clients with {each} each.")
    if summary.findings.counts:
        console.print(_findings_table(summary))


def _counts(summary: "ImportSummary") -> dict[str, object]:
    """Return what `pfl data inspect` counts, for programs."""
    return {
        "name": summary.info.name,
        "parts": [asdict(part) for part in summary.parts()],
        "questions_by_key": {split: dict(tally.questions_by_key) for split, tally in summary.splits.items()},
    }


def _print_parts(summary: "ImportSummary", published: bool) -> None:
    """Print the counts of each client, and of the seen and unseen providers of each other split."""
    from starter_kit.data.inspection import PART_COUNTS, published_parts

    columns = (Column(name, justify="right") for name in PART_COUNTS)
    table = Table(Column("part", no_wrap=True), *columns, title="As in Table A1 of the papers")
    printed = published_parts() if published else {}
    for part in summary.parts():
        table.add_row(Text(part.name), *(f"{getattr(part, name):,}" for name in PART_COUNTS))
        if known := printed.get(part.name):
            table.add_row(
                "  published", *(f"{known[name]:,}" if name in known else "–" for name in PART_COUNTS)
            )
    console.print(table)


def _print_documents(summary: "ImportSummary") -> None:
    """Print how many documents there are, and how many questions about each field, the most frequent first."""
    splits = summary.splits
    print_lines(
        f"Documents: {', '.join(f'{len(tally.documents):,} in {split}' for split, tally in splits.items())}."
    )
    keys = sum((tally.questions_by_key for tally in splits.values()), Counter[str]())
    table = Table("questions about", *(Column(split, justify="right") for split in splits))
    for key, _ in keys.most_common():
        table.add_row(
            Text(key or "unknown"), *(str(tally.questions_by_key[key]) for tally in splits.values())
        )
    console.print(table)


def _findings_table(summary: "ImportSummary") -> Table:
    table = Table(
        "problem, and how it was handled", "examples", Column("times", justify="right"), title="Findings"
    )
    for finding, count in summary.findings.counts.items():
        places = "; ".join(summary.findings.examples[finding])
        table.add_row(finding.value, Text(shorten(places)), str(count))
    return table
