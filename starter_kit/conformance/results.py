"""The result of an examination, as it is printed and sent between processes."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from evaluator.errors import Problem
from evaluator.messages.examinations import ConformanceTest, Verdict


class Group(StrEnum):
    """The tests that are made from the same runs."""

    NOISE = "noise"
    CONFIGURED = "configured"
    CONTRIBUTIONS = "contributions"
    LENGTHS = "lengths"
    LONG_RUN = "long_run"
    LARGE_MODEL = "large_model"
    NOT_FINITE = "not_finite"
    EMPTY = "empty"
    CARRIED = "carried"
    SAMPLING = "sampling"


class Inputs(BaseModel):
    """What an examination is made of.

    Attributes:
        method: A settings file, or the name of one of the kit's configs; its `method` may be a Python file.
        changes: Single settings to change, `name=value`.
        seed: The seed of the synthetic data and of the harness's own choices. Noise and coins have none.
        only: The groups of tests to make; by default all. An examination of some groups shows nothing of the others.
        with_sample: Whether to return the `sample`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: str
    changes: list[str] = []
    seed: int
    only: list[Group] | None = None
    with_sample: bool = True


class Result(BaseModel):
    """The result of an examination.

    Attributes:
        method: As in `Inputs`.
        method_sha256: Of the method's own file; empty for one of the kit's methods.
        unit: The privacy unit that was examined.
        problems: Why there are no tests, or fewer; then the method has not passed.
        sample: Noise of the first round over its claimed scale, for comparison with that of another process.
    """

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    method: str
    method_sha256: str = ""
    unit: str = ""
    seed: int = 0
    seconds: float = 0.0
    tests: list[ConformanceTest] = []
    problems: list[Problem] = []
    sample: list[float] = []

    @property
    def failed(self) -> list[ConformanceTest]:
        """The tests that failed."""
        return [test for test in self.tests if test.verdict is Verdict.FAILED]

    @property
    def without_power(self) -> list[ConformanceTest]:
        """The tests that could not have found anything."""
        return [test for test in self.tests if test.verdict is Verdict.NO_POWER]

    @property
    def passed(self) -> bool:
        """Whether tests were made and none failed; those `without_power` show nothing either way."""
        return bool(self.tests) and not self.failed and not self.problems
