"""The table of errors is complete, and hostile input can't flood or forge a message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.errors import ErrorCode, Problem, ProblemError, shorten
from evaluator.errors.codes import EXPLANATIONS


@pytest.mark.parametrize("code", ErrorCode)
def test_every_code_is_explained_with_a_next_step(code: ErrorCode) -> None:
    explanation = EXPLANATIONS[code]
    assert explanation.meaning.endswith(".")
    assert explanation.next_step


def test_a_claim_in_a_signed_record_is_corrected_by_training_again() -> None:
    assert "Train again" in EXPLANATIONS[ErrorCode.RECORD_CLAIM].next_step


def test_codes_are_unique_and_look_alike() -> None:
    values = [code.value for code in ErrorCode.__members__.values()]
    assert len(set(values)) == len(ErrorCode.__members__)
    assert all(value == f"E_{name}" for name, value in zip(ErrorCode.__members__, values, strict=True))


def test_a_rejection_takes_what_it_is_not_given_from_the_table() -> None:
    problem = Problem.of(ErrorCode.LOG_ROW, where="line 7", expected=4, found=3)
    assert problem.message == EXPLANATIONS[ErrorCode.LOG_ROW].meaning
    assert problem.next_step == EXPLANATIONS[ErrorCode.LOG_ROW].next_step
    assert str(problem).splitlines()[1:4] == ["  where: line 7", "  expected: 4", "  found: 3"]


def test_an_error_carries_all_its_problems() -> None:
    problems = [Problem.of(code) for code in (ErrorCode.LOG_ROW, ErrorCode.LOG_ROUND)]
    error = ProblemError(*problems)
    assert error.problems == problems
    assert error.problem == problems[0]
    assert all(str(problem) in str(error) for problem in problems)


def test_a_problem_survives_its_journey_as_json() -> None:
    problem = Problem.of(ErrorCode.CHECKPOINT_SHAPE, where="tensor x", expected=[1], found=[2])
    assert Problem.model_validate_json(problem.model_dump_json()) == problem


hostile = st.text(max_size=2000) | st.sampled_from(
    ["\x1b[2J" * 500, "\u202e" * 300, "a\nE_FAKE: b", "\ud800"]
)


@given(hostile)
def test_whatever_is_quoted_is_short_and_printable(text: str) -> None:
    problem = Problem.of(ErrorCode.LOG_ROW, where=text, expected=text, found=text)
    for quoted in (problem.where, problem.expected, problem.found):
        assert len(quoted) <= 200
        assert quoted.isprintable()
    assert len(str(problem).splitlines()) <= 5


def test_shortening_says_that_it_shortened() -> None:
    assert shorten("x" * 200) == "x" * 200
    assert shorten("x" * 201) == "x" * 199 + "…"
