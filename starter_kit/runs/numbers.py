"""The numbers of a round and of a run that are kept and shown; of a private run, none that follow from its data."""

from collections.abc import Sequence
from pathlib import Path

from evaluator.contracts import evaluator_version
from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.inference import predict
from evaluator.errors import ErrorCode, ProblemError
from evaluator.scoring.metrics import GoldAnswers
from starter_kit.federation.rounds import Round
from starter_kit.reporting.metrics import RoundMetrics, RunSummary
from starter_kit.runs.resuming import RunState
from starter_kit.runs.setup import RunSetup
from starter_kit.runs.spending import Spending
from starter_kit.settings.run_settings import RunSettings


def round_metrics(
    setup: RunSetup, finished: Round, data: Path, epsilon: float | None, seconds: float, *, masked: bool
) -> RoundMetrics:
    """A round's numbers; of a private run, only those that don't follow from who took part.

    Args:
        masked: Whether clients run apart and tell the server nothing but sums.
    """
    private = epsilon is not None
    anls, accuracy = _validate(setup, finished, data)
    return RoundMetrics(
        round=finished.number,
        clients=len(finished.clients),
        providers=None if private or masked else sum(finished.sampled.values()),
        bytes_down=finished.bytes_down,
        bytes_up=finished.bytes_up,
        loss=None if private else finished.loss,
        epsilon=epsilon,
        anls=anls,
        accuracy=accuracy,
        seconds=None if private else seconds,
    )


def run_summary(
    setup: RunSetup,
    rounds: Sequence[RoundMetrics],
    state: RunState,
    budget: Spending,
    checkpoint_sha256: str,
) -> RunSummary:
    settings, guarantee = setup.settings, setup.guarantee
    last = rounds[-1] if rounds else None
    return RunSummary(
        experiment=settings.experiment,
        method=settings.method,
        rounds=state.round,
        parameters_sent=setup.payload.tensors.size,
        codec=settings.codec,
        bytes_total=sent_bytes(rounds),
        epsilon=budget.epsilon(state.round),
        delta=guarantee.delta if guarantee else None,
        unit=guarantee.unit if guarantee else None,
        budget=guarantee.budget if guarantee else None,
        anls=last.anls if last else None,
        accuracy=last.accuracy if last else None,
        split="valid" if last and last.anls is not None else None,
        seconds=None if guarantee else sum(line.seconds or 0 for line in rounds),
        kit_version=evaluator_version(),
        resumed=state.breaks,
        base_sha256=setup.base_sha256,
        checkpoint_sha256=checkpoint_sha256,
    )


def sent_bytes(rounds: Sequence[RoundMetrics]) -> int:
    """In both directions."""
    return sum(line.bytes_down + line.bytes_up for line in rounds)


def check_validation(settings: RunSettings, data: Path) -> None:
    """Raises `ProblemError` (`E_DATASET_FORMAT`) where there is nothing to validate on, before a round was trained."""
    if settings.evaluate_every and not Dataset(data, "valid").questions:
        raise ProblemError.of(
            ErrorCode.DATASET_FORMAT,
            where=f"{data}, valid",
            expected="questions, as evaluate_every is set",
            found="none",
        )


def _validate(setup: RunSetup, finished: Round, data: Path) -> tuple[float, float] | tuple[None, None]:
    """ANLS and accuracy of the round's model on the validation split, where the settings ask for it now."""
    every = setup.settings.evaluate_every
    if not every or (finished.number % every and finished.number != setup.rounds):
        return None, None
    dataset = Dataset(data, "valid")
    with setup.payload.model_with(finished.weights) as model:
        found = predict(model, setup.tokenizer, dataset, device=setup.settings.device)
        setup.set_dropout()
    gold = GoldAnswers([question.answers for question in dataset.questions])
    scores = gold.score([prediction.answer for prediction in found]).means()
    return scores.anls, scores.accuracy
