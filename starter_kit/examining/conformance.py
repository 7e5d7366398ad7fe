"""L1: does the attached method keep its claims? The harness runs here, the method in sandboxed processes.

The harness makes the data, the choices and the verdicts, in a process that never loads the method's file. Each run of
rounds is a question to a fresh process, confined by `evaluator.sandbox`, which loads the file, runs the rounds and
sends back what an observer sees of them. So a method file can't reach the tests, the verdict or the result; nor the
network, the environment or any file but its own and the kit's.

What this doesn't do: the rounds run in the method's process, so that a file may make up what is observed. It then has
to make up releases with noise, contributions and coins as claimed, which is what behaving during an examination means;
no examination of a black box can tell the two apart. Reading the file is the reviewers' work.
"""

import json
import resource
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.examinations import ConformanceFindings, ConformanceTest, ExaminationJob
from evaluator.messages.jobs import ArtifactKind
from evaluator.sandbox.limits import MIB, Limits
from evaluator.sandbox.sandbox import Ending, SandboxError
from starter_kit.conformance.claims import Claims
from starter_kit.conformance.examination import examine_subject
from starter_kit.conformance.exchange import Answer, Data, Description, Question, Seen, Variant
from starter_kit.conformance.processes import fresh_process_test
from starter_kit.conformance.results import Inputs, Result
from starter_kit.conformance.session import Asked, Observation, check_finite
from starter_kit.conformance.synthetic import Federation
from starter_kit.examining.confined import Confined, in_brief
from starter_kit.examining.judging import Judgment
from starter_kit.federation.rounds import Client

PROCESS = "starter_kit.examining.conformance_process"
MEMORY_BYTES = 8 << 30
# Of a message's JSON for each number in it, and for everything else.
NUMBER_CHARACTERS, OTHER_CHARACTERS = 12, 100_000


@dataclass(frozen=True)
class ConfinedInputs:
    """What a confined examination is made of.

    Attributes:
        inputs: As for any examination; `method` is the path of the settings file.
        method_sha256: Of the method file beside it; empty for one of the kit's methods.
        timeout_s: Seconds of computing for each question.
    """

    inputs: Inputs
    method_sha256: str = ""
    timeout_s: int = 60

    @property
    def limits(self) -> Limits:
        """The limits of each of the method's processes."""
        return Limits(
            wall_s=10.0 * self.timeout_s,
            cpu_s=self.timeout_s,
            memory_bytes=4096 * MIB,
            file_bytes=16 * MIB,
            result_bytes=64 * MIB,
        )


def examine(job: ExaminationJob, confined: Confined, _: Callable[[str], None]) -> Judgment:
    """Examine the attached method in this process, whose memory is limited from here on."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    asked = ConfinedInputs(
        inputs=Inputs(method=str(job.settings), seed=job.seed),
        method_sha256=job.sha256.get(ArtifactKind.METHOD_FILE, ""),
        timeout_s=job.timeout_s,
    )
    result = examine_confined(asked, confined)
    return Judgment(
        ConformanceFindings(unit=result.unit, seed=result.seed, tests=result.tests), result.problems
    )


def examine_confined(asked: ConfinedInputs, confined: Confined) -> Result:
    """Examine a method in the sandbox; whatever it does, the result is a verdict or a coded problem."""
    begun, inputs = perf_counter(), asked.inputs
    try:
        result = examine_subject(lambda: ConfinedSubject.loaded(asked, confined), inputs)
        if inputs.with_sample:
            tests = [*result.tests, _fresh_process_test(asked, confined, result)]
            result = result.model_copy(update={"tests": tests})
    except ProblemError as error:
        result = Result(
            method=inputs.method,
            method_sha256=asked.method_sha256,
            seed=inputs.seed,
            problems=error.problems,
        )
    return result.model_copy(update={"seconds": perf_counter() - begun})


def _fresh_process_test(asked: ConfinedInputs, confined: Confined, result: Result) -> ConformanceTest:
    if not result.sample:
        return fresh_process_test([], [])
    inputs = asked.inputs.model_copy(update={"only": []})
    again = examine_subject(lambda: ConfinedSubject.loaded(asked, confined), inputs)
    return fresh_process_test(result.sample, again.sample)


class ConfinedSubject:
    """A method in the sandbox; see `Subject`."""

    def __init__(
        self, asked: ConfinedInputs, confined: Confined, variants: Sequence[Variant], described: Description
    ) -> None:
        self._asked, self._confined, self._variants = asked, confined, list(variants)
        self._described = described
        self.values: Mapping[str, Any] = described.values
        self.local = described.local
        self.is_masked = described.is_masked
        self.method_sha256 = asked.method_sha256

    @classmethod
    def loaded(cls, asked: ConfinedInputs, confined: Confined) -> "ConfinedSubject":
        """Return the method as its settings describe it. Raises `ProblemError` if it can't be loaded."""
        return cls(asked, confined, [], _describe(asked, confined, []))

    def with_noise(self, relative: float, clip_norm: float | None = None) -> "ConfinedSubject":
        variant = Variant(kind="noise", relative=relative, clip_norm=clip_norm)
        return ConfinedSubject(self._asked, self._confined, [*self._variants, variant], self._described)

    def without_participants(self) -> "ConfinedSubject | None":
        variants = [*self._variants, Variant(kind="nobody")]
        described = _describe(self._asked, self._confined, variants)
        return ConfinedSubject(self._asked, self._confined, variants, described) if described.exists else None

    def session(
        self, federation: Federation, *, quick: bool = False, plain: bool = False
    ) -> "ConfinedRounds":
        question = Question(
            method=self._asked.inputs.method,
            changes=self._asked.inputs.changes,
            variants=self._variants,
            data=Data.of(federation),
            quick=quick,
            plain=plain,
        )
        return ConfinedRounds(self._asked, self._confined, question, federation)


class ConfinedRounds:
    """A run on synthetic data in a process of its own; see `Rounds`."""

    def __init__(
        self, asked: ConfinedInputs, confined: Confined, question: Question, federation: Federation
    ) -> None:
        self._asked, self._confined, self._question = asked, confined, question
        self.federation = federation
        self._answer: Answer | None = None
        self._printed = ""

    @property
    def claims(self) -> Claims:
        return self._known().read_claims()

    @property
    def clients(self) -> list[Client]:
        return [member.client() for member in self._known().clients]

    @property
    def text(self) -> str:
        return self._known().text + self._printed

    def rounds(self, count: int, asked: Asked = Asked()) -> list[Observation]:  # noqa: B008  (frozen)
        return self._ask(self._question.model_copy(update={"count": count, "asked": asked}))

    def _known(self) -> Answer:
        if self._answer is None:
            self._ask(self._question)
        assert self._answer is not None  # noqa: S101  (it is asked for above)
        return self._answer

    def _ask(self, question: Question) -> list[Observation]:
        collected = _Collected(question, self.federation)
        self._answer, printed = _ask(self._asked, self._confined, question, collected)
        self._printed += printed
        if len(collected.observations) != question.count:
            raise ValueError(f"{len(collected.observations)} rounds in place of {question.count}")
        return collected.observations


class _Collected:
    """The observations of a process, as they arrive; rejects what can't be of the rounds that were asked for."""

    def __init__(self, question: Question, federation: Federation | None) -> None:
        self._question, self._federation = question, federation
        self.observations: list[Observation] = []

    def add(self, message: Any) -> None:
        """Take one message. Raises `ValueError` if it isn't what an honest process sends."""
        if self._federation is None or len(self.observations) >= self._question.count:
            raise ValueError("more rounds than were asked for")
        size = self._federation.size
        vectors = len(self._federation.clients) + 3
        if len(json.dumps(message)) > NUMBER_CHARACTERS * vectors * size + OTHER_CHARACTERS:
            raise ValueError("a round that is too large")
        observation = Seen.model_validate(message).observation(size)
        self.observations.append(observation)
        if self._question.asked.finite:
            check_finite(observation, len(self.observations))


def _describe(asked: ConfinedInputs, confined: Confined, variants: Sequence[Variant]) -> Description:
    question = Question(method=asked.inputs.method, changes=asked.inputs.changes, variants=list(variants))
    answer, _ = _ask(asked, confined, question, _Collected(question, None))
    if answer.description is None:
        raise ValueError("no description of the method")
    return answer.description


def _ask(
    asked: ConfinedInputs, confined: Confined, question: Question, collected: _Collected
) -> tuple[Answer, str]:
    """Return the answer of a fresh process, and what it printed past Python's streams.

    Raises:
        ProblemError: The method failed, took too long, or ended its process; or its process sent nonsense.
    """
    output: list[str] = []
    try:
        answer = confined.ask(
            Answer,
            PROCESS,
            "answer",
            question.model_dump(mode="json"),
            readable=[Path(question.method).parent],
            limits=asked.limits,
            on_message=collected.add,
            on_output=output.append,
        )
    except SandboxError as error:
        raise _problem(asked, error) from error
    except ValueError as error:
        raise ProblemError.of(
            ErrorCode.CONFORMANCE_CRASHED, where="the method's process", expected="rounds", found=error
        ) from error
    if answer.problems:
        raise ProblemError(*answer.problems)
    return answer, "".join(output)


def _problem(asked: ConfinedInputs, error: SandboxError) -> ProblemError:
    if error.ending in (Ending.TIME, Ending.CPU_TIME):
        limit = f"a result within {asked.timeout_s} s of computing"
        return ProblemError.of(ErrorCode.CONFORMANCE_TIMEOUT, where="the method's process", expected=limit)
    return ProblemError.of(
        ErrorCode.CONFORMANCE_CRASHED,
        where="the method's process",
        expected="a result",
        found=in_brief(error),
    )
