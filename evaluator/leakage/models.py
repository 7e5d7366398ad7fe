"""An assessment of a checkpoint, from files to a result: what is measured of it and of the base weights, and attacks.

One model is in memory at a time. The providers that `dataset.json` lists as clients' are the members.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType

import numpy as np
import torch

from evaluator.docvqa.dataset import Dataset, Question
from evaluator.docvqa.inference import Answerer
from evaluator.docvqa.loading import shards
from evaluator.docvqa.tokenization import Tokenizer
from evaluator.docvqa.vt5 import VT5, WEIGHTS
from evaluator.errors import ErrorCode, ProblemError
from evaluator.leakage.assessment import EVERYTHING, Options, assess
from evaluator.leakage.features import Answers, Asked, ProviderFeatures, provider_features
from evaluator.leakage.hiding import Hiding
from evaluator.leakage.measuring import Measured, measure
from evaluator.leakage.memorization import (
    changes,
    exact_test,
    hidden_answers,
    memorization,
    memorized_questions,
    recall,
    recalled_providers,
)
from evaluator.leakage.results import Example, LeakageResult, RecallResult
from evaluator.leakage.statistics import Bools, Floats, check_both_kinds
from evaluator.leakage.stored_measurements import StoredMeasurements
from evaluator.leakage.training_answers import absent_questions, disclosed, reused_questions
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.progress import OnProgress, ignore_progress
from evaluator.scoring.predictions import circumstances

EXAMPLES = 50
# An interrupted pass repeats at most the questions about so many pages.
PIECE_PAGES = 512
# Modules here that what is measured depends on: a change of the attacks or their statistics measures nothing again.
MEASURED_BY = ("hiding.py", "measuring.py", "memorization.py")
REUSED, ABSENT = "reused", "absent"  # passes that need training's answers


@dataclass(frozen=True)
class _Model:
    """What one model did: with all questions, with hidden ones of each kind, and with pages without a question."""

    plain: Measured
    hidden: dict[str, Measured]
    change: list[float] | None


def membership(dataset: Dataset) -> dict[str, bool]:
    """Return for each provider that has a page whether it was in the training; pages may be of nobody known.

    Raises:
        ProblemError: (`E_LEAKAGE_LABELS`) `dataset.json` names no training providers.
    """
    members = {name for names in dataset.info.clients.values() for name in names}
    if not members:
        raise ProblemError.of(
            ErrorCode.LEAKAGE_LABELS,
            where=str(dataset.folder / "dataset.json"),
            expected="clients with their providers",
            found="none",
        )
    return {page.provider: page.provider in members for page in dataset.pages.values() if page.provider}


def assess_checkpoint(
    checkpoint: Path,
    base: Path,
    dataset: Dataset,
    *,
    options: Options = EVERYTHING,
    references: Sequence[ProviderFeatures] = (),
    training: Dataset | None = None,
    reuse: bool = False,
    absent: Sequence[str] = (),
    kept: Path | None = None,
    on_progress: OnProgress = ignore_progress,
) -> LeakageResult:
    """Return what a checkpoint leaks of the data set's providers, compared with the base weights.

    Args:
        training: The training split, for the two memorization tests that need its answers.
        reuse: Whether its answers serve as gold answers where members' pages have none.
        absent: Fields that nonmembers' pages are asked for although they don't have them; in training's words.
        kept: Where measurements are kept, so that an interrupted assessment resumes.
        on_progress: Receives the questions that were asked, and how many there are in all passes.

    Raises:
        ProblemError: A file can't be read, or there is nothing to assess: see `assess`.
    """
    is_member = membership(dataset)
    # Before minutes of work.
    check_both_kinds(np.array([is_member.get(name, False) for name in dataset.questions_by_provider()]))
    questions = memorized_questions(dataset) if options.memorization else []
    hidden = dict.fromkeys(map(str, Hiding), questions)
    if training:
        hidden[REUSED] = reused_questions(dataset, training, is_member) if reuse and questions else []
        hidden[ABSENT] = [
            question for field in absent for question in absent_questions(dataset, training, is_member, field)
        ]
    passes = _Passes(on_progress, 2 * sum(map(len, (dataset.questions, *hidden.values()))))
    submitted, before = _measured(checkpoint, base, dataset, passes, hidden=hidden, kept=kept)
    result = assess(_asked(dataset, is_member, submitted, before, questions), references, options)
    if questions:
        result = _with_recalls(result, dataset, is_member, hidden, submitted, before)
    if training and hidden[ABSENT]:
        answers, of_base = (model.hidden[ABSENT].answers for model in (submitted, before))
        found = disclosed(hidden[ABSENT], answers, of_base, dataset, training)
        result = result.model_copy(update={"disclosed": found})
    return result


def losses_of(
    checkpoint: Path,
    base: Path,
    dataset: Dataset,
    *,
    on_progress: OnProgress = ignore_progress,
) -> tuple[Floats, Floats]:
    """Return the losses (Q,) of a data set's questions before training and after it."""
    passes = _Passes(on_progress, 2 * len(dataset.questions))
    after, before = _measured(checkpoint, base, dataset, passes)
    return before.plain.loss, after.plain.loss


def reference_features(
    checkpoint: Path, base: Path, dataset: Dataset, *, kept: Path | None = None
) -> ProviderFeatures:
    """Return the features of a reference model on the data set that it was trained for."""
    after, before = _measured(checkpoint, base, dataset, _Passes(ignore_progress, 0), kept=kept)
    return provider_features(_asked(dataset, membership(dataset), after, before, []))


class _Passes:
    """Progress over all passes."""

    def __init__(self, on_progress: OnProgress, total: int) -> None:
        self._on_progress, self._total, self._before = on_progress, total, 0

    def show(self, done: int, _of: int) -> None:
        self._on_progress(self._before + done, self._total)

    def end(self, questions: int) -> None:
        self._before += questions
        self._on_progress(self._before, self._total)


def _measured(
    checkpoint: Path,
    base: Path,
    dataset: Dataset,
    passes: _Passes,
    *,
    hidden: Mapping[str, Sequence[Question]] = MappingProxyType({}),
    kept: Path | None = None,
) -> tuple[_Model, _Model]:
    """Return what the checkpoint and the base weights do with all questions, and with hidden answers to some."""
    with tempfile.TemporaryDirectory(prefix="leakage-") as folder:
        work = Path(folder)
        trials = {
            name: hidden_answers(
                dataset, questions, Hiding.PAGE if name == Hiding.PAGE else Hiding.EVIDENCE, work / name
            )
            for name, questions in hidden.items()
            if questions
        }
        submitted, before = (
            _measure(path, base, dataset, trials, kept or work / "kept", passes, with_change=with_change)
            for path, with_change in ((checkpoint, Hiding.EVIDENCE in trials), (base / WEIGHTS, False))
        )
        return submitted, before


def _measure(
    checkpoint: Path,
    base: Path,
    dataset: Dataset,
    trials: Mapping[str, Dataset],
    kept_folder: Path,
    passes: _Passes,
    *,
    with_change: bool,
) -> _Model:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    kept = StoredMeasurements(
        kept_folder,
        {
            **circumstances(base, dataset, torch.device(device)),
            "checkpoint": sha256_of(checkpoint),
            "code": {name: sha256_of(Path(__file__).with_name(name)) for name in MEASURED_BY},
        },
    )

    @cache
    def answerer() -> Answerer:
        # Not before it is needed: all that was measured may be kept.
        model = VT5.from_checkpoint(base, checkpoint)
        return Answerer(model, Tokenizer.from_folder(base), device=device)

    plain = _in_pieces(kept, "plain", answerer, dataset, passes, losses=True)
    hidden = {
        name: _in_pieces(kept, _stage(name, trial), answerer, trial, passes, losses=False)
        for name, trial in trials.items()
    }
    change = None
    if with_change:
        with tempfile.TemporaryDirectory(prefix="leakage-") as folder:

            def as_measured() -> Measured:
                found = np.array(changes(answerer(), dataset, Path(folder, "changes")))
                return Measured([""] * len(found), found, np.full(len(found), np.nan))

            change = kept.get("change", as_measured).confidence.tolist()
    return _Model(plain, hidden, change)


def _stage(name: str, trial: Dataset) -> str:
    """Return what a pass is kept as: with its questions' hash where they follow from more than the data set."""
    return f"{name}-{trial.sha256()[:16]}" if name in (REUSED, ABSENT) else name


def _in_pieces(
    kept: StoredMeasurements,
    stage: str,
    answerer: Callable[[], Answerer],
    dataset: Dataset,
    passes: _Passes,
    *,
    losses: bool,
) -> Measured:
    """Return what the model does with a data set's questions, each piece kept as soon as it is measured."""

    def measured_piece(questions: Sequence[Question]) -> Measured:
        return measure(answerer(), dataset, questions, losses=losses, on_progress=passes.show)

    pieces = shards(dataset.questions, PIECE_PAGES)
    measured = []
    for number, piece in enumerate(pieces):
        questions = [dataset.questions[place] for place in piece.questions]
        measured.append(kept.get(f"{stage}-{number:04}", partial(measured_piece, questions)))
        passes.end(len(questions))
    return Measured.joined(measured, [piece.questions for piece in pieces])


def _asked(
    dataset: Dataset,
    is_member: dict[str, bool],
    submitted: _Model,
    before: _Model,
    questions: Sequence[Question],
) -> Asked:
    return Asked(
        providers=[dataset.pages[question.page].provider for question in dataset.questions],
        is_member=is_member,
        submitted=submitted.plain.scored(dataset.questions),
        base=before.plain.scored(dataset.questions),
        memorization=memorization(
            dataset, questions, submitted.hidden[Hiding.EVIDENCE].scored(questions), submitted.change
        )
        if submitted.change is not None
        else None,
        keys=[question.key for question in dataset.questions],
    )


def _with_recalls(
    result: LeakageResult,
    dataset: Dataset,
    is_member: dict[str, bool],
    hidden: Mapping[str, Sequence[Question]],
    submitted: _Model,
    before: _Model,
) -> LeakageResult:
    """Return the result with the memorization test of both models."""
    questions = hidden[Hiding.EVIDENCE]
    owners = [dataset.pages[question.page].provider for question in questions]
    members = np.array([is_member[owner] for owner in owners])
    recalls = [
        RecallResult(**dict(recall(answers, chosen)), hiding=hiding, field=field, model=model, kind=kind)
        for hiding in Hiding
        for model, found in (("submitted", submitted), ("base", before))
        for answers in [found.hidden[hiding].scored(questions)]
        for field, kind, chosen in _groups(questions, members)
    ]
    if reused := hidden.get(REUSED):
        recalls += [
            RecallResult(
                **dict(recall(answers, chosen)),
                hiding=Hiding.EVIDENCE,
                field=f"{field} ({REUSED})",
                model=model,
                kind="members",
            )
            for model, found in (("submitted", submitted), ("base", before))
            for answers in [found.hidden[REUSED].scored(reused)]
            for field, kind, chosen in _groups(reused, np.ones(len(reused), dtype=bool), total=False)
            if kind == "members"
        ]
    scored = submitted.hidden[Hiding.EVIDENCE].scored(questions)
    known = [is_member[name] for name in recalled_providers(scored, owners)]
    counts = [sum(is_member[owner] == kind for owner in set(owners)) for kind in (True, False)]
    return result.model_copy(
        update={
            "recalls": recalls,
            "examples": _examples(questions, owners, is_member, submitted),
            "recalled_members": sum(known),
            "recalled_nonmembers": len(known) - sum(known),
            "recall_p_value": exact_test(counts[0], sum(known), counts[1], len(known) - sum(known)),
        }
    )


def _groups(
    questions: Sequence[Question], members: Bools, *, total: bool = True
) -> Iterator[tuple[str, str, Bools]]:
    """Yield all questions and each field's, of members and of nonmembers."""
    keys = np.array([question.key for question in questions])
    fields = sorted(set(keys.tolist()) - {""})
    for field in ["all", *(fields if len(fields) > 1 else [])] if total else fields:
        of_field = np.ones(len(keys), dtype=bool) if field == "all" else keys == field
        yield field, "members", of_field & members
        yield field, "nonmembers", of_field & ~members


def _examples(
    questions: Sequence[Question], owners: Sequence[str], is_member: dict[str, bool], submitted: _Model
) -> list[Example]:
    """Return the surest of the hidden answers that were given exactly."""
    found = []
    for hiding in Hiding:
        measured = submitted.hidden[hiding]
        scored: Answers = measured.scored(questions)
        for place in np.flatnonzero(scored.accuracy == 1).tolist():
            question = questions[place]
            found.append(
                Example(
                    provider=owners[place],
                    is_member=is_member[owners[place]],
                    hiding=hiding,
                    field=question.key,
                    question=question.question,
                    answer=measured.answers[place],
                    confidence=float(measured.confidence[place]),
                )
            )
    return sorted(found, key=lambda example: -example.confidence)[:EXAMPLES]
