"""Examinations of scored runs: the job that the site gives to a judge of the starter kit, and the judge's report.

Every level has one form of report: the envelope `Report`, with what the level found inside (`findings`, whose `kind`
names the level). The site stores a report as it is. Whether an examination passed follows from its report alone
(`passed`), and so does the sentence on pages (`in_words`).
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from evaluator.errors import Problem
from evaluator.messages.base import Message
from evaluator.messages.jobs import ArtifactKind, TrackRules, TrustLevel


class Verdict(StrEnum):
    """The outcome of one test; `not_applicable` where the method claims nothing that it could compare."""

    PASSED = "passed"
    FAILED = "failed"
    NO_POWER = "no_power"
    NOT_APPLICABLE = "not_applicable"


class Finding(Message):
    """Base of the parts of a report: an examined method may choose a number, but it is always finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class CodeIdentity(Finding):
    """Which code was examined.

    Attributes:
        kit_version: The version of the starter kit that ran.
        code_sha256: The hash of that kit's sources and of the settings, as a training record states it.
        method_sha256: Of the method file; empty for one of the kit's methods.
        is_recorded: Whether the run's training record states this `code_sha256`; None where the run has no record.
    """

    kit_version: str
    code_sha256: str
    settings_sha256: str
    method_sha256: str = ""
    is_recorded: bool | None = None


class ConformanceTest(Finding):
    """One test of the harness; see docs/conformance.md.

    Attributes:
        statistic: What was measured, in the units that `measures` names; None where nothing was.
        limit: The value that a method that keeps its claims may reach: of `p_value` where there is one, else of
            `statistic`.
        p_value: The probability of a result as extreme under the claims; None for a test without chance.
    """

    id: str
    measures: str
    statistic: float | None = None
    limit: float | None = None
    p_value: float | None = None
    verdict: Verdict
    note: str = ""


class LevelFindings(Finding):
    """What an examination of one level found."""

    @property
    def coverage(self) -> str:
        """Which part of the run it is about, such as `4 of 100 rounds`; empty where it is about all of it."""
        return ""


class ConformanceFindings(LevelFindings):
    """What the harness found in the method file, on synthetic data.

    Attributes:
        unit: The privacy unit that was examined.
        seed: The seed of the synthetic data.
    """

    INCOMPLETE: ClassVar[str] = "The method could not be examined"

    kind: Literal["conformance"] = "conformance"
    unit: str = ""
    seed: int
    tests: list[ConformanceTest] = []

    @property
    def passed(self) -> bool:
        """Whether tests were made and none failed; one without power shows nothing either way."""
        return bool(self.tests) and not self.named(Verdict.FAILED)

    def named(self, verdict: Verdict) -> list[str]:
        """Return the ids of the tests with this verdict."""
        return [test.id for test in self.tests if test.verdict == verdict]

    @property
    def in_words(self) -> str:
        """What was found, in a sentence or two."""
        if failed := self.named(Verdict.FAILED):
            return f"The method doesn't behave as claimed: {', '.join(failed)}."
        blind = ", ".join(self.named(Verdict.NO_POWER))
        without = f" Without power (no evidence): {blind}." if blind else ""
        return f"The method behaved as claimed for one {self.unit} in {len(self.tests)} tests.{without}"


class ReplayFindings(LevelFindings):
    """What training some rounds again showed; docs/replay.md.

    Attributes:
        challenge: What drew the rounds, in hexadecimal.
        rounds: The numbers of the rounds, if all of them agree; the last is the run's last one.
        of: How many rounds the run has; 0 where that wasn't reported.
        exact: Whether they agree bit for bit, and not only within the tolerance for different hardware. How far they
            were from the run isn't here, since that depends on the data.
    """

    INCOMPLETE: ClassVar[str] = "A replayed round doesn't match the record, the code and the data"

    kind: Literal["replay"] = "replay"
    challenge: str
    rounds: list[int] = []
    of: int = 0
    exact: bool = False

    @model_validator(mode="before")
    @classmethod
    def _of_one_round(cls, values: Any) -> Any:
        """Read a report from before a replay covered several rounds."""
        if not isinstance(values, dict) or "round" not in values:
            return values
        number = values["round"]
        others = {name: value for name, value in values.items() if name != "round"}
        return others | {"rounds": [] if number is None else [number]}

    @property
    def passed(self) -> bool:
        """Whether the rounds agree."""
        return bool(self.rounds)

    @property
    def coverage(self) -> str:
        if not self.passed:
            return ""
        return f"{len(self.rounds)} of {self.of} rounds" if self.of else "1 round"

    @property
    def in_words(self) -> str:
        """What was found, in a sentence or two."""
        how = "bit for bit" if self.exact else "within the tolerance for different hardware"
        drawn = ", ".join(map(str, self.rounds))
        # Of a report from before a replay covered several rounds, nobody knows whether its round was the last one.
        which = "the last one and others drawn after the record" if self.of else "drawn after the record"
        return (
            f"{self.coverage} trained again, {which}: {drawn}. All agree, {how}. "
            "These rounds have no differential privacy toward the organizers."
        )


class Scores(Finding):
    """The scores of one training, with four decimals; `epsilon` is None where ε plays no part.

    Exact scores would reveal answers of the secret test set.
    """

    anls: float
    accuracy: float
    bytes_total: int
    epsilon: float | None = None


class Comparison(Finding):
    """A submitted score beside those of the repeats.

    Attributes:
        name: The score's name in `Scores`.
        repeated: The mean over the repeats.
        allowed: The largest difference that counts as explained.
        basis: How `allowed` was computed, in words.
    """

    name: str
    submitted: float
    repeated: float
    allowed: float = Field(ge=0)
    basis: str

    @property
    def difference(self) -> float:
        """The submitted score less that of the repeats."""
        return self.submitted - self.repeated

    @property
    def is_explained(self) -> bool:
        """Whether the difference is as small as the training's own chance makes it."""
        return abs(self.difference) <= self.allowed


class RerunFindings(LevelFindings):
    """What whole trainings of the attached files scored, beside what was submitted.

    Attributes:
        submitted: The run's scores at the time.
        repeats: The scores of each training.
        comparisons: The scores that must agree.
        other_terms: What the first line of a repeat's training record states differently from the submitted one.
    """

    INCOMPLETE: ClassVar[str] = "The training could not be repeated"

    kind: Literal["rerun"] = "rerun"
    submitted: Scores
    repeats: list[Scores] = []
    comparisons: list[Comparison] = []
    other_terms: list[str] = []

    @property
    def passed(self) -> bool:
        """Whether every score agrees, of a training that was recorded on the same terms."""
        explained = bool(self.comparisons) and all(one.is_explained for one in self.comparisons)
        return explained and not self.other_terms

    @property
    def in_words(self) -> str:
        """What was found, in a sentence or two."""
        if self.other_terms:
            return f"The attached files train with settings that differ from the record: {', '.join(self.other_terms)}."
        scores = "; ".join(_compared(one) for one in self.comparisons)
        return f"{_times(len(self.repeats))}. {scores}."


Findings = ConformanceFindings | ReplayFindings | RerunFindings


class Report(Finding):
    """The report of an examination, of any level.

    Attributes:
        problems: Why the findings are incomplete. An examination with problems hasn't passed.
    """

    seconds: float
    identity: CodeIdentity
    problems: list[Problem] = []
    findings: Annotated[Findings, Field(discriminator="kind")]

    @property
    def passed(self) -> bool:
        """Whether the examination shows what its level stands for."""
        return self.findings.passed and not self.problems

    @property
    def for_team(self) -> Self:
        """The report without what the examined code wrote, which is for the organizers: it ran on their machine."""
        return self.model_copy(update={"problems": [Problem.of(problem.code) for problem in self.problems]})

    @property
    def in_words(self) -> str:
        """What was found, in a sentence or two."""
        if self.problems:
            return f"{self.findings.INCOMPLETE}: {', '.join(problem.code for problem in self.problems)}."
        return self.findings.in_words


class ExaminationJob(Message):
    """What the site gives to a judge. All paths are of this machine.

    Attributes:
        judge: The judge's module, whose function `examine` makes the findings.
        files: The run's files, by kind; the method file is beside the settings, under its own name.
        sha256: Their SHA-256.
        data: The data folder with the training split; None if the level needs none.
        base: The folder of the base weights; likewise.
        test_set: The data folder with the test split, which no method ever sees; likewise.
        challenge: What the site drew after the record was uploaded, in hexadecimal.
        submitted: The run's scores, as its team may see them.
        is_ranked_by_bytes: Whether the track ranks by the bytes that were sent, which must then agree as well.
        is_counted: Whether the run's bytes were counted, as those of the repeats must then be.
        seed: The seed of synthetic data, which nobody can know in advance.
        timeout_s: Seconds of computing for each process that runs the method on synthetic data.
        hours: How long one training may take.
        repeats: How often to train.
    """

    judge: str
    level: TrustLevel
    files: dict[ArtifactKind, Path]
    sha256: dict[ArtifactKind, str]
    data: Path | None = None
    base: Path | None = None
    test_set: Path | None = None
    track: str
    rules: TrackRules
    challenge: str = ""
    submitted: Scores
    is_ranked_by_bytes: bool
    is_counted: bool
    seed: int
    timeout_s: int
    hours: float
    repeats: int

    @property
    def settings(self) -> Path:
        """The settings file."""
        return self.files[ArtifactKind.SETTINGS]

    def folder(self, path: Path | None) -> Path:
        """Return a folder that the level needs. Raises `ValueError` if the job has none."""
        if path is None:
            raise ValueError(f"a job of {self.level.label} lacks a folder that the level needs")
        return path


class JudgeAnswer(Message):
    """What a judge writes: a report, or the reason why nothing could be examined on this machine."""

    report: Report | None = None
    reason: str = ""

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if (self.report is None) != bool(self.reason):
            raise ValueError("either a report or a reason is expected")
        return self


def _times(count: int) -> str:
    return "Trained one more time" if count == 1 else f"Trained {count} more times"


def _compared(one: Comparison) -> str:
    verdict = "is explained" if one.is_explained else "is not explained"
    return (
        f"{one.name}: {one.submitted:.6g} submitted, {one.repeated:.6g} repeated; the difference {verdict} by "
        f"{one.basis}, which allows {one.allowed:.3g}"
    )
