"""The numbers of a run that people see: one line per round in `metrics.jsonl`, and the whole in `summary.json`.

In a private run, one that spends ε, the training loss, the time and the number of sampled providers would reveal who
took part. So neither model has a place for them beside an ε, and a file that holds both is rejected.
"""

import json
import math
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Self, TextIO

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.units import PrivacyUnit
from evaluator.messages.results import MOST_DECIMALS, supported_decimals
from evaluator.records.lines import Sha256
from starter_kit.reporting.files import read_file, replace_file

METRICS = "metrics.jsonl"
SUMMARY = "summary.json"

HIDDEN = ("providers", "loss", "seconds")  # of a private run
# Likewise of its summary: which data it was trained on is in the annex, for the organizers only.
HIDDEN_IN_SUMMARY = ("seconds", "data_sha256")


def _finite_or_none(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0)]
Score = Annotated[float, Field(ge=0, le=1)]


class _Numbers(BaseModel):
    """Immutable base of both models. Nothing is converted: `"1"` is no number."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def as_json(self) -> str:
        """Return one line of JSON, without the keys that are None."""
        return json.dumps(self.model_dump(mode="json", exclude_none=True))


class RoundMetrics(_Numbers):
    """The numbers of one round. What a run doesn't have, or must not show, is None.

    Attributes:
        round: From 1; 0 is the state before training.
        clients: How many took part.
        providers: How many took part; only where nothing is private.
        bytes_down: Sent by the server in this round.
        bytes_up: Sent to the server in this round.
        loss: Mean training loss of the round, nats a token; None where it isn't finite. Never beside an ε.
        epsilon: Spent up to and with this round; None where nothing is private.
        anls: On the whole validation split, where the model was evaluated on it after this round; likewise `accuracy`.
        questions: How many questions the split has, where `anls` is given.
        sample_anls: On the sample of the validation split that rounds are compared by, where there is one; likewise
            `sample_accuracy`.
        sample_questions: How many questions the sample has.
        seconds: Wall-clock time of the round. Never beside an ε.
    """

    round: Count
    clients: Count | None = None
    providers: Count | None = None
    bytes_down: Count
    bytes_up: Count
    loss: Annotated[float | None, BeforeValidator(_finite_or_none)] = None
    epsilon: Amount | None = None
    anls: Score | None = None
    accuracy: Score | None = None
    questions: Count | None = None
    sample_anls: Score | None = None
    sample_accuracy: Score | None = None
    sample_questions: Count | None = None
    seconds: Amount | None = None

    @model_validator(mode="after")
    def _private(self) -> Self:
        if self.epsilon is not None and (hidden := self.hidden()):
            raise ValueError(f"a private round must not report its {', '.join(hidden)}")
        return self

    @property
    def comparable_anls(self) -> float | None:
        """ANLS on the questions that every evaluated round of the run was scored on."""
        return self.anls if self.sample_anls is None else self.sample_anls

    def hidden(self) -> list[str]:
        """Return the names of numbers that are given and that a private run doesn't show."""
        return [name for name in HIDDEN if getattr(self, name) is not None]


class RunSummary(_Numbers):
    """The numbers of a whole run.

    Attributes:
        parameters_sent: d, the parameters that training changes, all of which a message carries.
        codec: How a message packs its numbers, such as `float32` or `nf4`.
        bytes_total: Sent in both directions in all rounds.
        epsilon: What the run spent, by the trainer's accountant; None where nothing is private. With it, `delta` and
            `unit` are given as well.
        unit: Whose presence ε hides.
        budget: The ε that the run was to keep within, if any.
        anls: Of the final checkpoint on `split`, of so many `questions`; None until it was evaluated. Likewise
            `accuracy`.
        best_round: The round with the highest ANLS on the validation split, or on the sample of it that rounds are
            compared by, if the run keeps its model.
        sample_questions: How many questions that sample has; None where rounds were scored on the whole split.
        seconds: Wall-clock time of the training. Never beside an ε.
        resumed: How often the run was resumed after an interruption.
        clients: How many there are in the federation.
        data_sha256: The hash of the training data's manifest, as `pfl data manifest` prints it. Never beside an ε.
        device: What the model was trained on.
        versions: The versions of Python and of the libraries that training rests on.
        finished: The day on which training ended, in UTC.
    """

    experiment: str
    method: str
    rounds: Count
    parameters_sent: Count
    codec: str
    bytes_total: Count
    epsilon: Amount | None = None
    delta: Annotated[float, Field(ge=0, lt=1)] | None = None
    unit: Annotated[PrivacyUnit, Field(strict=False)] | None = None
    budget: Amount | None = None
    anls: Score | None = None
    accuracy: Score | None = None
    questions: Count | None = None
    split: str | None = None
    best_round: Count | None = None
    sample_questions: Count | None = None
    seconds: Amount | None = None
    kit_version: str
    resumed: Count = 0
    clients: Count | None = None
    data_sha256: Sha256 | None = None
    device: str | None = None
    versions: dict[str, str] = {}
    finished: Annotated[date | None, Field(strict=False)] = None
    base_sha256: Sha256
    checkpoint_sha256: Sha256

    @property
    def decimals(self) -> int:
        """How many decimals of the scores the split supports."""
        return MOST_DECIMALS if self.questions is None else supported_decimals(self.questions)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.is_private and (self.delta is None or self.unit is None):
            raise ValueError("an ε needs its delta and its unit")
        if self.is_private and (
            hidden := [name for name in HIDDEN_IN_SUMMARY if getattr(self, name) is not None]
        ):
            raise ValueError(f"a private run must not report its {', '.join(hidden)}")
        if (self.anls is not None or self.accuracy is not None) and self.split is None:
            raise ValueError("a score needs its split")
        return self

    @property
    def is_private(self) -> bool:
        """Return whether the run spends ε."""
        return self.epsilon is not None


def best_round(metrics: Iterable[RoundMetrics]) -> int | None:
    """Return the round with the highest ANLS on the questions that rounds are compared by; of equal ones, the first."""
    scored = [(line.comparable_anls, -line.round) for line in metrics if line.comparable_anls is not None]
    return -max(scored)[1] if scored else None


def write_line(file: TextIO, metrics: RoundMetrics) -> None:
    """Append a round to an open `metrics.jsonl`."""
    file.write(metrics.as_json() + "\n")


def write_metrics(path: Path, metrics: Iterable[RoundMetrics]) -> None:
    """Replace `metrics.jsonl` atomically, as a run does when it is resumed."""
    replace_file(path, "".join(line.as_json() + "\n" for line in metrics))


def read_metrics(path: Path) -> list[RoundMetrics]:
    """Return the rounds of `metrics.jsonl`, in order. A last line that was cut short by a kill is left out.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) The file isn't there, a line is no `RoundMetrics`, or rounds go back.
    """
    lines = [(number, line) for number, line in enumerate(read_file(path).splitlines(), 1) if line.strip()]
    metrics: list[RoundMetrics] = []
    for number, line in lines:
        try:
            metrics.append(RoundMetrics.model_validate_json(line))
        except ValidationError as error:
            if number == lines[-1][0] and _is_no_json(error):
                break
            raise _rejection(f"{path}, line {number}", error) from error
        if len(metrics) > 1 and metrics[-1].round <= metrics[-2].round:
            raise ProblemError.of(
                ErrorCode.RUN_FOLDER,
                message="The rounds of a run go back.",
                where=f"{path}, line {number}",
                expected=f"a round after {metrics[-2].round}",
                found=metrics[-1].round,
            )
    return metrics


def write_summary(path: Path, summary: RunSummary) -> None:
    """Replace `summary.json` atomically."""
    replace_file(path, summary.as_json() + "\n")


def read_summary(path: Path) -> RunSummary:
    """Return the summary in `summary.json`.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) The file isn't there, or is no `RunSummary`.
    """
    try:
        return RunSummary.model_validate_json(read_file(path))
    except ValidationError as error:
        raise _rejection(str(path), error) from error


def check_private(metrics: Sequence[RoundMetrics], summary: RunSummary) -> None:
    """Check that rounds and summary agree on privacy, and that no round of a private run reveals participation.

    A line is checked on its own only where it has an ε; here all lines are.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) They don't agree, or a round reports what it must not.
    """
    for line in metrics:
        if summary.is_private and (hidden := line.hidden()):
            raise ProblemError.of(
                ErrorCode.RUN_FOLDER,
                message="A private run must not report values that reveal participation.",
                where=f"{METRICS}, round {line.round}",
                expected=f"none of {', '.join(HIDDEN)}",
                found=", ".join(hidden),
                next_step="Delete these numbers from the file before anybody sees it.",
            )
        if line.epsilon is not None and not summary.is_private:
            raise ProblemError.of(
                ErrorCode.RUN_FOLDER,
                message="The rounds of the run spend ε, and its summary has none.",
                where=f"{METRICS}, round {line.round}",
                expected=f"epsilon, delta and unit in {SUMMARY}",
            )


def _is_no_json(error: ValidationError) -> bool:
    return error.errors()[0]["type"] == "json_invalid"


def _rejection(where: str, error: ValidationError) -> ProblemError:
    detail = error.errors(include_url=False)[0]
    name = ".".join(str(part) for part in detail["loc"])
    return ProblemError.of(
        ErrorCode.RUN_FOLDER,
        message="A file of the run can't be read.",
        where=f"{where}, {name}" if name else where,
        expected=detail["msg"].removeprefix("Value error, "),
        found="" if isinstance(detail["input"], dict | bytes) else detail["input"],
    )
