"""The method's side of a confined examination: `answer` runs in a sandbox, with the method's file and nothing else.

Whatever the method's file does to this process, it can do no more than choose what comes out: see
`starter_kit.examining.conformance`.
"""

from collections.abc import Callable
from typing import Any

from evaluator.errors import ErrorCode, Problem, ProblemError
from starter_kit.conformance.exchange import CLAIMS, Answer, Description, Member, Question, Seen
from starter_kit.conformance.session import Session
from starter_kit.conformance.variants import as_examined, with_noise, without_participants
from starter_kit.own_files import file_of
from starter_kit.plugin import plugins_in
from starter_kit.settings.configuration import load_settings
from starter_kit.settings.run_settings import LocalTrainingSettings, RunSettings


def answer(inputs: Any, send: Callable[[object], None]) -> Any:
    """Run what a `Question` asks, send a `Seen` for each round, and return an `Answer`; both as JSON."""
    return _answer(Question.model_validate(inputs), send).model_dump(mode="json")


def _answer(question: Question, send: Callable[[object], None]) -> Answer:
    try:
        settings = _settings(question)
        if question.data is None or settings is None:
            return Answer(description=_description(settings))
        return _run(question, settings, send)
    except MemoryError:
        # The sandbox reports it.
        raise
    except ProblemError as error:
        return Answer(problems=error.problems)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the method's own, whatever it is
        found = f"{type(error).__name__}: {error}"
        return Answer(problems=[Problem.of(ErrorCode.CONFORMANCE_FAILED, where="a round", found=found)])


def _settings(question: Question) -> RunSettings | None:
    try:
        settings = load_settings(question.method, question.changes)
    except ProblemError as error:
        found = error.problems[0]
        raise ProblemError.of(
            ErrorCode.CONFORMANCE_IMPORT, where=found.where, expected=found.expected, found=found.found
        ) from error
    varied: RunSettings | None = as_examined(settings)
    for variant in question.variants:
        if varied is not None and variant.kind == "noise":
            varied = with_noise(varied, variant.relative, variant.clip_norm)
        elif varied is not None:
            varied = without_participants(varied)
    return varied


def _description(settings: RunSettings | None) -> Description:
    if settings is None:
        return Description(exists=False)
    local = settings.local if isinstance(settings, LocalTrainingSettings) else None
    # The harness never loads a participant's file.
    if local and any(file_of(type(plugin)) for _, plugin in plugins_in(local)):
        local = None
    return Description(
        values=settings.model_dump(mode="json"),
        local=local,
        is_masked=settings.secure_aggregation is not None,
    )


def _run(question: Question, settings: RunSettings, send: Callable[[object], None]) -> Answer:
    assert question.data is not None  # noqa: S101  (or there is nothing to run)
    federation = question.data.federation()
    learner = federation.learner(quick=question.quick)
    session = Session(settings, federation, learner, plain=question.plain)
    for seen in session.rounds(question.count, question.asked):
        send(Seen.of(seen).model_dump(mode="json"))
    return Answer(
        claims=CLAIMS.dump_python(session.claims, mode="json"),
        clients=[Member.of(client) for client in session.clients],
        text=session.text,
    )
