"""Coded errors, as values and as exceptions; `evaluator.errors.codes` is the table of the codes.

A `Problem` names its code, the place, what was expected, what was found and what to do next. It is written
for the participant and never carries secret data; what an operator needs travels apart from it.
"""

from typing import Self

from pydantic import BaseModel, ConfigDict

from evaluator.errors.codes import EXPLANATIONS
from evaluator.errors.codes import ErrorCode as ErrorCode


class Problem(BaseModel):
    """One thing that is wrong, described for the participant.

    Attributes:
        where: File and place, such as "checkpoint.safetensors, tensor shared.weight" or "line 7".
    """

    model_config = ConfigDict(frozen=True)

    code: ErrorCode
    message: str
    where: str = ""
    expected: str = ""
    found: str = ""
    next_step: str = ""

    @classmethod
    def of(
        cls,
        code: ErrorCode,
        where: str = "",
        expected: object = "",
        found: object = "",
        *,
        message: str = "",
        next_step: str = "",
    ) -> Self:
        """Return the problem for `code`; message and next step are the table's unless given."""
        explanation = EXPLANATIONS[code]
        return cls(
            code=code,
            message=message or explanation.meaning,
            next_step=next_step or explanation.next_step,
            where=shorten(where),
            expected=shorten(expected),
            found=shorten(found),
        )

    def __str__(self) -> str:
        rows = {"where": self.where, "expected": self.expected, "found": self.found, "next": self.next_step}
        said = [f"  {label}: {value}" for label, value in rows.items() if value]
        return "\n".join([f"{self.code}: {self.message}", *said])


class ProblemError(Exception):
    """Raised where an input is rejected; carries every `Problem` found, at least one, for the participant."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = list(problems)

    @classmethod
    def of(
        cls, code: ErrorCode, where: str = "", expected: object = "", found: object = "", **texts: str
    ) -> Self:
        """Return the error of one problem, built by `Problem.of`."""
        return cls(Problem.of(code, where, expected, found, **texts))

    @property
    def problem(self) -> Problem:
        return self.problems[0]


def shorten(value: object, limit: int = 200) -> str:
    """Return `value` as printable text of at most `limit` characters, so that hostile input can't flood a message."""
    text = "".join(c if c.isprintable() else "�" for c in str(value)[: limit + 1])
    return text if len(text) <= limit else text[: limit - 1] + "…"
