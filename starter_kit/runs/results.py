"""The metrics of a round and of a run that are stored and shown; those of a private run don't depend on its data."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from evaluator.docvqa.dataset import Dataset
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import ScoringResult, evaluator_version
from evaluator.scoring.metrics import GoldAnswers, QuestionScores
from starter_kit.dp.guarantee import Guarantee
from starter_kit.federation.rounds import Round
from starter_kit.reporting.metrics import (
    SUMMARY,
    RoundMetrics,
    RunSummary,
    best_round,
    read_summary,
    write_summary,
)
from starter_kit.runs.resuming import TrainingState
from starter_kit.runs.setup import RunSetup

# The libraries that results depend on.
LIBRARIES = ("torch", "transformers", "tokenizers", "numpy")


@dataclass(frozen=True)
class PrivacySpending:
    """ε that a run spends on its rounds, and on interrupted ones where an untrusted server may have seen them.

    Attributes:
        guarantee: The run's guarantee; None where nothing is private.
        interrupted_rounds: How many rounds began before this process and were never finished.
    """

    guarantee: Guarantee | None
    interrupted_rounds: int

    def check_before(self, round_number: int) -> None:
        """Check that a round stays within the budget, before it begins.

        Raises:
            ProblemError: (`E_PRIVACY_BUDGET`) The round would exceed the budget.
        """
        if self.guarantee:
            self.guarantee.check_before(round_number + self._seen)

    def epsilon(self, rounds: int) -> float | None:
        """Return ε after a number of whole rounds; None where nothing is private."""
        return self.guarantee.epsilon(rounds + self._seen) if self.guarantee else None

    @property
    def _seen(self) -> int:
        return self.interrupted_rounds if self.guarantee and self.guarantee.seen_by_server else 0


def round_metrics(
    setup: RunSetup, finished: Round, epsilon: float | None, seconds: float, *, masked: bool
) -> RoundMetrics:
    """Return a round's metrics; of a private run, only those that don't depend on who took part.

    Args:
        epsilon: ε including this round; None where nothing is private.
        masked: Whether clients run separately from the server and it receives only the sum of their updates.
    """
    private = epsilon is not None
    scores = _validate(setup, finished)
    return RoundMetrics(
        round=finished.number,
        clients=len(finished.clients),
        providers=None if private or masked else sum(finished.sampled.values()),
        bytes_down=finished.bytes_down,
        bytes_up=finished.bytes_up,
        loss=None if private else finished.loss,
        epsilon=epsilon,
        seconds=None if private else seconds,
        **scores,
    )


def run_summary(
    setup: RunSetup,
    rounds: Sequence[RoundMetrics],
    state: TrainingState,
    spending: PrivacySpending,
    checkpoint_sha256: str,
) -> RunSummary:
    """Return the summary of a run that ended with `state`."""
    settings, guarantee = setup.settings, setup.guarantee
    last = rounds[-1] if rounds else None
    return RunSummary(
        experiment=settings.experiment,
        method=settings.method,
        rounds=state.round,
        parameters_sent=len(setup.wire.start),
        codec=str(settings.codec),
        bytes_total=sent_bytes(rounds),
        epsilon=spending.epsilon(state.round),
        delta=guarantee.delta if guarantee else None,
        unit=guarantee.unit if guarantee else None,
        budget=guarantee.budget if guarantee else None,
        anls=last.anls if last else None,
        accuracy=last.accuracy if last else None,
        questions=last.questions if last else None,
        split="valid" if last and last.anls is not None else None,
        best_round=best_round(rounds) if settings.checkpoints.best else None,
        sample_questions=last.sample_questions if last else None,
        seconds=None if guarantee else sum(line.seconds or 0 for line in rounds),
        kit_version=evaluator_version(),
        resumed=state.breaks,
        clients=len(setup.clients),
        data_sha256=None if guarantee else setup.data_sha256,
        device=_device_name(setup.model.device),
        versions={"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
        finished=datetime.now(UTC).date(),
        base_sha256=setup.base_sha256,
        checkpoint_sha256=checkpoint_sha256,
    )


def _device_name(device: torch.device) -> str:
    """Return the kind of processor or GPU, as far as the system names it."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{device.type}, {platform.machine()}, {torch.get_num_threads()} threads"


def sent_bytes(rounds: Sequence[RoundMetrics]) -> int:
    """Return the bytes of all messages of the rounds, in both directions."""
    return sum(line.bytes_down + line.bytes_up for line in rounds)


def check_validation(setup: RunSetup) -> None:
    """Check before training that there is something to validate on, if the settings require validation.

    A private run that scores its rounds on documents of the providers that it protects releases more than ε covers.

    Raises:
        ProblemError: (`E_DATASET_FORMAT`) The validation split has no questions; (`E_CONFIGURATION`) it has protected
            providers' documents, and the settings don't declare it.
    """
    settings = setup.settings
    if not settings.evaluate_every:
        return
    dataset = Dataset(setup.data, "valid")
    if not dataset.questions:
        raise ProblemError.of(
            ErrorCode.DATASET_FORMAT,
            where=f"{setup.data}, valid",
            expected="questions, as evaluate_every is set",
            found="none",
        )
    if setup.plan.guarantee is None or getattr(settings, "validation_on_private_data", False):
        return
    protected = {provider for client in setup.clients for provider in client.providers}
    if any(page.provider in protected for page in dataset.pages.values()):
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            where="evaluate_every",
            expected="0, or a validation split without the providers that the run protects",
            found=f"{settings.evaluate_every}, with documents of protected providers in {setup.data}, valid",
            next_step="Scores on their documents are not covered by ε. Leave evaluate_every at 0 and score the "
            "checkpoint afterwards, or declare it with validation_on_private_data=true, which flags the run.",
        )


def keep_scores(folder: Path, result: ScoringResult, split: str) -> bool:
    """Write the scores of `pfl evaluate` into a finished run's summary, and return whether the folder has one.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) A file of the run can't be read or written.
    """
    path = folder / SUMMARY
    if not path.is_file():
        return False
    scores = {"anls": result.anls, "accuracy": result.accuracy, "questions": result.questions, "split": split}
    write_summary(path, RunSummary.model_validate({**dict(read_summary(path)), **scores}))
    return True


def _validate(setup: RunSetup, finished: Round) -> dict[str, Any]:
    """Return the scores of the round's model on the validation split, where the settings require them now.

    They have the names of `RoundMetrics`. Where the settings name a number of questions, a round is scored on a sample
    of so many, the same in each, and the last round on all of them as well.
    """
    every, last = setup.settings.evaluate_every, finished.number == setup.rounds
    if not every or (finished.number % every and not last):
        return {}
    dataset = Dataset(setup.data, "valid")
    sample = _sample(setup, len(dataset.questions))
    places = range(len(dataset.questions)) if last or not sample else sample
    questions = [dataset.questions[place] for place in places]
    predictions = setup.model.predict(finished.weights, setup.tokenizer, dataset, questions)
    scores = GoldAnswers([question.answers for question in questions]).score(
        [prediction.answer for prediction in predictions]
    )
    found: dict[str, Any] = {}
    if last or not sample:
        means = scores.means()
        found |= {"anls": means.anls, "accuracy": means.accuracy, "questions": means.questions}
    if sample:
        of_sample = np.isin(places, sample)
        of_them = QuestionScores(scores.anls[of_sample], scores.accuracy[of_sample]).means()
        found |= {
            "sample_anls": of_them.anls,
            "sample_accuracy": of_them.accuracy,
            "sample_questions": of_them.questions,
        }
    return found


def scored_questions(setup: RunSetup) -> int:
    """Return how many questions all rounds together are scored on."""
    every = setup.settings.evaluate_every
    if not every or not setup.rounds:
        return 0
    questions = len(Dataset(setup.data, "valid").questions)
    earlier = (setup.rounds - 1) // every
    return questions + earlier * (len(_sample(setup, questions)) or questions)


def _sample(setup: RunSetup, questions: int) -> list[int]:
    """Return the places of the questions that rounds are compared by, in their order; empty where these are all."""
    wanted = setup.settings.evaluate_questions
    if wanted is None or wanted >= questions:
        return []
    return sorted(setup.stream.at("validation").random().sample(range(questions), wanted))
