"""Finished runs as rows of a comparison; runs that differ in nothing but their seed may share a row."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Self

import yaml

from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.mechanisms.units import PrivacyUnit
from starter_kit.reporting.files import read_file
from starter_kit.reporting.metrics import SUMMARY, RunSummary, read_summary

SETTINGS = "settings.yaml"
UNREADABLE_SETTINGS = "The settings of the run can't be read."
LIKE_A_SEED = ("experiment", "seed", "device")  # settings in which repetitions of a run may differ


@dataclass(frozen=True)
class Spread:
    """The mean and standard deviation (n - 1) of a number over the runs of a row; one run has no deviation."""

    mean: float
    deviation: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """Return mean and deviation of `values`."""
        return cls(mean(values), stdev(values) if len(values) > 1 else None)


@dataclass(frozen=True)
class RunGroup:
    """One run, or several that repeat each other.

    Attributes:
        runs: The names of the folders, with those above where needed to tell them apart.
        experiment: The name that the runs share, else their method.
        anls: None where a run of the row was not evaluated; likewise `accuracy`.
        split: The split that was scored; None without scores.
        decimals: How many decimals of scores it supports.
        size_bytes: The bytes sent in both directions.
        epsilon: The largest ε of the runs; None where nothing is private. Likewise `delta` and `unit`.
        settings: The settings of the first run by their names, such as `lora.rank`; none if they can't be read.
    """

    runs: Sequence[str]
    experiment: str
    method: str
    anls: Spread | None
    accuracy: Spread | None
    split: str | None
    decimals: int
    size_bytes: Spread
    epsilon: float | None
    delta: float | None
    unit: PrivacyUnit | None
    settings: Mapping[str, object]


def run_groups(folders: Sequence[Path], *, group: bool) -> list[RunGroup]:
    """Return a row for each run, or with `group` for each set of repetitions, in the order given.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) Folders hold no finished run; one problem for each.
    """
    rows: dict[Hashable, list[tuple[Path, RunSummary]]] = {}
    problems: list[Problem] = []
    for index, folder in enumerate(folders):
        try:
            summary = _summary(folder)
            key = _what_repeats(folder, summary) if group else index
        except ProblemError as error:
            problems += error.problems
        else:
            rows.setdefault(key, []).append((folder, summary))
    if problems:
        raise ProblemError(*problems)
    names = _names(folders)
    return [_row(runs, names) for runs in rows.values()]


def _names(folders: Sequence[Path]) -> dict[Path, str]:
    """Return what each folder is called: its name, after those of the folders above it as far as others share it."""
    paths = {folder.resolve() for folder in folders}
    names: dict[Path, str] = {}
    for path in paths:
        ends = ("/".join(path.parts[-count:]) for count in range(1, len(path.parts)))
        alone = (end for end in ends if sum(f"{other}".endswith(f"/{end}") for other in paths) == 1)
        names[path] = next(alone, str(path))
    return names


def _summary(folder: Path) -> RunSummary:
    if not (folder / SUMMARY).is_file():
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            message="The folder doesn't contain a finished run.",
            where=str(folder),
            expected=f"the folder of a finished run, with {SUMMARY}",
            found="no such file",
            next_step="Name the folder that `pfl train` wrote; earlier versions of the kit did not write this file.",
        )
    return read_summary(folder / SUMMARY)


def _what_repeats(folder: Path, summary: RunSummary) -> Hashable:
    """Equal for runs that repeat each other: their settings, and of the summary what one row has one of."""
    settings = _settings(folder)
    same = {name: value for name, value in settings.items() if name not in LIKE_A_SEED}
    one = (summary.method, summary.base_sha256, summary.split, summary.unit, summary.delta)
    return yaml.safe_dump(same, sort_keys=False), one


def _settings(folder: Path) -> dict[str, object]:
    path = folder / SETTINGS
    try:
        settings = yaml.safe_load(read_file(path))
    except yaml.YAMLError as error:
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            str(path),
            "a YAML file",
            " ".join(str(error).split()),
            message=UNREADABLE_SETTINGS,
        ) from error
    if not isinstance(settings, dict):
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER, str(path), "settings, one a line", settings, message=UNREADABLE_SETTINGS
        )
    return settings


def _by_name(folder: Path) -> dict[str, object]:
    """The settings in which runs may differ, those in groups with the group's name before them."""
    try:
        settings = _settings(folder)
    except ProblemError:
        return {}
    return {name: value for name, value in _flat(settings) if name not in (*LIKE_A_SEED, "method")}


def _flat(settings: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _row(runs: Sequence[tuple[Path, RunSummary]], names: Mapping[Path, str]) -> RunGroup:
    summaries = [summary for _, summary in runs]
    first = summaries[0]
    return RunGroup(
        runs=[names[folder.resolve()] for folder, _ in runs],
        experiment=first.experiment if len({one.experiment for one in summaries}) == 1 else first.method,
        method=first.method,
        anls=_spread([summary.anls for summary in summaries]),
        accuracy=_spread([summary.accuracy for summary in summaries]),
        split=first.split,
        decimals=first.decimals,
        size_bytes=Spread.of([summary.bytes_total for summary in summaries]),
        epsilon=max((summary.epsilon for summary in summaries if summary.epsilon is not None), default=None),
        delta=first.delta,
        unit=first.unit,
        settings=_by_name(runs[0][0]),
    )


def _spread(values: Sequence[float | None]) -> Spread | None:
    """None where a value is missing: the mean of the others would not be the row's."""
    known = [value for value in values if value is not None]
    return Spread.of(known) if len(known) == len(values) else None
