"""A sweep: one config trained with every combination of some settings, and scored on the validation split.

Settings that were chosen by looking at private data cost privacy: the best of k private runs is less private than each
of them. So private methods are swept only on data that needs no protection, and `tuning_cost` says what it would
cost otherwise.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import yaml

from evaluator.accounting import comparison
from evaluator.docvqa.dataset import Dataset
from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.mechanism import SamplingRule
from starter_kit.federation.rounds import Client
from starter_kit.reporting.files import read_file
from starter_kit.runs.folder import SETTINGS
from starter_kit.settings.configuration import load_settings, snapshot
from starter_kit.settings.files import parse
from starter_kit.settings.run_settings import PrivateSettings, RunSettings

MAX_RUNS = 1000


@dataclass(frozen=True)
class Trial:
    """One combination of a sweep.

    Attributes:
        number: From 1.
        changes: As `--set` takes them.
    """

    number: int
    changes: tuple[str, ...]
    settings: RunSettings

    @property
    def name(self) -> str:
        """The name of its run folder."""
        return f"{self.number:03d}"

    def check_folder(self, out: Path) -> None:
        """Check that a run that is in its folder below `out` already is this one.

        Raises:
            ProblemError: (`E_RUN_FOLDER`) It has other settings.
        """
        stored = out / self.name / SETTINGS
        if not stored.exists() or read_file(stored).decode(errors="replace") == snapshot(self.settings):
            return
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            message="The folder contains a run with other settings than this one of the sweep.",
            where=str(stored),
            expected=f"the settings of run {self.number}, with {', '.join(self.changes)}",
            found="others",
            next_step="Name another folder with --out, or repeat the sweep with the same config, --grid and --set.",
        )


def trials_of(config: str, changes: Sequence[str], grid: Sequence[str]) -> list[Trial]:
    """Return all combinations of the values in `grid`, each `name=value,value`, on top of `changes`.

    Raises:
        ProblemError: (`E_CONFIGURATION`) A line of the grid can't be read, there are too many combinations, or one of
            them is no valid settings.
    """
    axes = [_axis(line) for line in grid]
    combinations = [*product(*axes)]
    if len(combinations) > MAX_RUNS:
        raise _wrong("--grid", f"at most {MAX_RUNS} runs", len(combinations))
    return [
        Trial(number, combination, load_settings(config, [*changes, *combination]))
        for number, combination in enumerate(combinations, 1)
    ]


def check_public(trials: Sequence[Trial], clients: Sequence[Client], *, public: bool) -> None:
    """Reject sweeping a private method on data that wasn't declared public.

    Raises:
        ProblemError: (`E_CONFIGURATION`) With what the sweep would cost.
    """
    private = [trial for trial in trials if isinstance(trial.settings, PrivateSettings)]
    if not private or public:
        return
    raise ProblemError.of(
        ErrorCode.CONFIGURATION,
        message="Choosing settings by private runs costs privacy that no single run's ε includes.",
        where="sweep",
        expected="a method without privacy, or data that needs no protection",
        found=tuning_cost(private, clients),
        next_step="Sweep on synthetic data and add --public-data, then train on the real data once.",
    )


def require_questions(data: Path) -> None:
    """Check that there is a validation split to score the runs on, before the first one trains.

    Raises:
        ProblemError: (`E_DATASET_FORMAT`) There is none, or it has no questions.
    """
    if not Dataset(data, "valid").questions:
        raise ProblemError.of(
            ErrorCode.DATASET_FORMAT,
            where=str(data / "valid" / "questions.jsonl"),
            expected="questions to score the runs on",
            found="none",
        )


def tuning_cost(trials: Sequence[Trial], clients: Sequence[Client]) -> str:
    """Return what the best of these private runs costs, as far as a bound is known."""
    costs = []
    for trial in trials:
        plan = trial.settings.plan(clients)
        if plan.guarantee:
            costs.append((plan.guarantee.epsilon(plan.rounds), plan.guarantee))
    spent, guarantee = max(costs, key=lambda cost: cost[0])
    rounds = max(trial.settings.rounds for trial in trials)
    bounds = comparison.compare(
        {SamplingRule.TWO_STAGE: guarantee.released(rounds)}, guarantee.delta, tuning_runs=float(len(trials))
    )
    best = [bound.epsilon for bound in bounds if "best of" in bound.method and bound.epsilon is not None]
    cost = (
        f"the best of about {len(trials)} such runs up to {max(best):.4g}"
        if best
        else "the best of them more"
    )
    return f"{len(trials)} private runs, each with ε up to {spent:.4g}; {cost}"


def command_lines(
    trials: Sequence[Trial], config: str, data: Path, base: Path, out: Path, fixed: Sequence[str]
) -> list[str]:
    """Return the `pfl train` command of each run, for a scheduler that starts them on machines of its own.

    Args:
        out: Folder of the run folders.
        fixed: Changes that all runs share.
    """
    folders = ["--data", str(data), "--base", str(base)]
    lines = []
    for trial in trials:
        changes = [word for change in (*fixed, *trial.changes, *_seed(trial)) for word in ("--set", change)]
        lines.append(shlex.join(["pfl", "train", config, *folders, "--out", str(out / trial.name), *changes]))
    return lines


def _seed(trial: Trial) -> list[str]:
    """The change that gives a run the seed of all others, which `pfl train` by itself would draw."""
    settings = trial.settings
    return [] if "seed" in settings.model_fields_set else [f"seed={settings.seed}"]


def _axis(line: str) -> list[str]:
    """The changes of one line of the grid."""
    name, equals, text = line.partition("=")
    try:
        values = parse(f"[{text}]")
    except yaml.YAMLError:
        values = None
    if not (name and equals and isinstance(values, list) and values):
        raise _wrong(f"--grid {line}", "name=value,value such as local.learning_rate=1e-3,3e-3", line)
    changes = [f"{name}={_written(value)}" for value in values]
    if len(set(changes)) < len(changes):
        raise _wrong(f"--grid {line}", "each value once", line)
    return changes


def _written(value: object) -> str:
    """A value as YAML in one line; for a plain one, PyYAML adds the mark of a document's end."""
    return yaml.safe_dump(value, default_flow_style=True, width=10**9).removesuffix("\n...\n").strip()


def _wrong(where: str, expected: str, found: object) -> ProblemError:
    return ProblemError.of(ErrorCode.CONFIGURATION, where, expected, found)
