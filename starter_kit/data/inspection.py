"""Inspection of a data folder: what it holds, what would stop a training run, and whether it is the published data."""

from collections import Counter
from pathlib import Path

from evaluator.docvqa.dataset import Dataset, DatasetInfo, read_info
from evaluator.errors import Problem
from evaluator.messages.progress import OnProgress, ignore_progress
from starter_kit.data.folders import malformed, splits_of
from starter_kit.data.images import is_readable
from starter_kit.data.summary import ImportSummary, SplitTally
from starter_kit.published import Source, published

PART_COUNTS = ("providers", "documents", "pages", "questions")


def inspect_folder(
    folder: Path, on_progress: OnProgress = ignore_progress
) -> tuple[ImportSummary, list[Problem]]:
    """Count a data folder and check it: rows are valid, images open, every training provider has one client.

    Raises:
        ProblemError: `E_DATASET_FORMAT`, if the folder can't be read at all.
    """
    info = read_info(folder)
    datasets = [Dataset(folder, split) for split in splits_of(folder)]
    tallies = {dataset.split: SplitTally.of(dataset) for dataset in datasets}
    problems = _client_problems(info, tallies)
    total, done = sum(len(dataset.pages) for dataset in datasets), 0
    for dataset in datasets:
        for page in dataset.pages.values():
            if not is_readable(dataset.image_path(page.page)):
                problems += malformed(
                    f"{dataset.split}, page {page.page}", "an image that opens", "none"
                ).problems
            done += 1
            on_progress(done, total)
    return ImportSummary(info, tallies), problems


def _client_problems(info: DatasetInfo, tallies: dict[str, SplitTally]) -> list[Problem]:
    """Providers of no client, of two, or, beside a training split, without pages there."""
    listed = Counter(provider for providers in info.clients.values() for provider in providers)
    training = tallies["train"].pages_by_provider if "train" in tallies else {}
    where = "dataset.json, clients"
    problems: list[Problem] = []
    if repeated := sorted(provider for provider, count in listed.items() if count > 1):
        problems += malformed(where, "every provider with one client", f"two for {repeated[0]}").problems
    if homeless := sorted(training.keys() - listed.keys()):
        problems += malformed(
            where, "every training provider with a client", f"none for {homeless[0]}"
        ).problems
    if training and (idle := sorted(listed.keys() - training.keys())):
        problems += malformed(where, "training pages of every provider", f"none of {idle[0]}").problems
    return problems


def published_parts() -> dict[str, dict[str, int]]:
    """Return the published counts of each part of the competition's data, by the names of `ImportSummary.parts`.

    The validation split's pages and questions are published as totals only, as the part "valid".
    """
    parts: dict[str, dict[str, int]] = {}
    for source in (Source.PRIVACY, Source.COMPETITION):
        for number in published().table(source, "A1").numbers():
            parts.setdefault(number.row, {})[number.column] = int(number.value)
    return parts


def differences_from_published(summary: ImportSummary) -> list[Problem]:
    """Return a problem for each part that was published with other counts.

    Only parts that the folder has are compared: its training data may be in another folder than its test set.
    """
    known, parts = published_parts(), summary.parts()
    counts = {part.name: {name: getattr(part, name) for name in PART_COUNTS} for part in parts}
    if valid := [part for part in parts if part.name.startswith("valid,")]:
        counts["valid"] = {name: sum(getattr(part, name) for part in valid) for name in PART_COUNTS}
    problems: list[Problem] = []
    for part, found in counts.items():
        expected = known.get(part, {})
        if wrong := [name for name, count in expected.items() if found[name] != count]:
            problems += malformed(
                part,
                f"{', '.join(f'{expected[name]:,} {name}' for name in wrong)}, as published in Table A1",
                ", ".join(f"{found[name]:,} {name}" for name in wrong),
                "Check that all of the competition's files were there, and what the import left out.",
            ).problems
    return problems
