"""FedAvg with Laplace noise does what its equations say, on records whose gradients are known."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.events import FedAvgLaplace, Laplace
from evaluator.mechanisms.units import Adjacency, PrivacyUnit
from starter_kit.dp.laplace_release import LaplaceRelease
from starter_kit.federation.rounds import Client, ClientTask, Message
from starter_kit.methods.laplace_fedavg import LaplaceFedAvg, Settings
from starter_kit.reporting.metrics import METRICS, SUMMARY, read_metrics, read_summary
from starter_kit.settings.configuration import load_settings
from tests.starter_kit.cut_off import CutError, CutOff
from tests.starter_kit.quadratics import Quadratics, clients_with, numbers
from tests.starter_kit.toy import STREAM, aggregated, run_rounds, server
from tests.starter_kit.training_runs import trained

SIZE = 50_000
NO_NOISE = 1e-9


def method(
    *counts: int, clip_norm: float = 100.0, learning_rate: float = 0.5, noise_multiplier: float = NO_NOISE
) -> LaplaceFedAvg:
    release = LaplaceRelease(clip_norm, noise_multiplier)
    return LaplaceFedAvg(release, learning_rate, dict(enumerate(counts)))


def settings(*changes: str) -> Settings:
    loaded = load_settings("laplace-fedavg", changes)
    assert isinstance(loaded, Settings)
    return loaded


def models(method: LaplaceFedAvg, clients: list[Client], records: Tensor, rounds: int) -> Iterator[Tensor]:
    """The model after each round, from zero."""
    start = torch.zeros(records.shape[1])
    for finished in run_rounds(
        server(method, clients, Quadratics(records), start), start, range(1, rounds + 1)
    ):
        yield finished.weights


def message(method: LaplaceFedAvg, client: Client, records: Tensor) -> Tensor:
    """What the client sends in a round that starts from zero."""
    task = ClientTask(client, 1, 2, torch.zeros(records.shape[1]), Quadratics(records), STREAM, {})
    return method.client_update(task).message


def test_two_rounds_come_out_as_computed_by_hand() -> None:
    """Client 0 has 1 and 3, client 1 has −1, −1, −1 and 2; η = 1/2.

    Round 1, w = 0: mean gradients −2 and 1/4, steps 1 and −1/8, w = 1/3·1 − 2/3·1/8 = 1/4.
    Round 2: mean gradients −7/4 and 1/2, steps 7/8 and −1/4, w = 1/4 + 7/24 − 1/6 = 3/8.
    """
    found = models(method(2, 4), clients_with(2, 4), numbers(1, 3, -1, -1, -1, 2), 2)
    assert [float(weights) for weights in found] == pytest.approx([1 / 4, 3 / 8])


def test_each_records_gradient_is_clipped_in_l1_before_the_mean() -> None:
    """With C = 1: (3, 1) counts as (3/4, 1/4), and (0, −1/2) as it is; η = 1/2 and I = 2."""
    records = torch.tensor([[3.0, 1.0], [0.0, -0.5]])
    sent = message(method(2, clip_norm=1.0), clients_with(2)[0], records)
    assert sent.tolist() == pytest.approx([0.75 / 4, (0.25 - 0.5) / 4], abs=1e-6)


def test_the_gradient_of_every_record_is_taken_by_itself() -> None:
    learner = Quadratics(numbers(1, 2, 3))
    task = ClientTask(clients_with(3)[0], 1, 1, torch.zeros(1), learner, STREAM, {})
    method(3).client_update(task)
    assert learner.asked == [[0], [1], [2]]


def test_clients_count_by_their_records() -> None:
    three_to_one = [Message(0, torch.tensor([1.0])), Message(1, torch.tensor([-1.0]))]
    aggregate = aggregated(method(3, 1), torch.tensor([10.0]), three_to_one)
    assert float(aggregate.weights) == pytest.approx(10.5)
    assert float(aggregate.total) == 0


def test_a_client_that_was_lost_moves_nothing_and_gives_its_weight_to_nobody() -> None:
    aggregate = aggregated(method(3, 1), torch.tensor([10.0]), [Message(1, torch.tensor([-1.0]))])
    assert float(aggregate.weights) == pytest.approx(9.75)


def test_replacing_one_record_moves_a_message_by_the_sensitivity_at_most_and_can_reach_it() -> None:
    far = 1e6 * torch.eye(4)
    exact = method(3, clip_norm=2.0, learning_rate=0.3)
    client = clients_with(3)[0]
    before = message(exact, client, torch.stack([far[0], far[1], far[2]]))
    after = message(exact, client, torch.stack([far[0], far[1], -far[2]]))
    elsewhere = message(exact, client, torch.stack([far[0], far[1], far[3]]))
    bound = exact.sensitivity(0)
    assert bound == pytest.approx(2 * 2.0 * 0.3 / 3)
    for moved in (after, elsewhere):
        assert float((before - moved).abs().sum()) == pytest.approx(bound, rel=1e-5)


def has_scale(noise: Tensor, scale: float) -> bool:
    return bool(stats.kstest(noise.double().numpy() / scale, "laplace").pvalue > 1e-7)


def test_the_noise_of_a_message_covers_that_clients_own_sensitivity() -> None:
    """Δ = 2·0.2·0.5/I_p for ε̄ = 1/2, at a client of two records and one of four."""
    noisy = method(2, 4, clip_norm=0.2, noise_multiplier=2.0)
    clients, records = clients_with(2, 4), torch.zeros(6, SIZE)
    for client, scale in zip(clients, (0.2, 0.1), strict=True):
        noise = message(noisy, client, records)
        assert has_scale(noise, scale)
        assert not has_scale(noise, 0.9 * scale)
        assert not has_scale(noise, 1.1 * scale)


def test_clients_and_rounds_have_independent_noise() -> None:
    noisy = method(2, 2, noise_multiplier=1.0)
    draws = [message(noisy, client, torch.zeros(4, SIZE)) for client in clients_with(2, 2) for _ in range(2)]
    correlations = np.corrcoef(torch.stack(draws).numpy())[np.triu_indices(4, 1)]
    assert np.abs(correlations).max() < 6 / np.sqrt(SIZE)


def test_noise_does_not_follow_from_the_seed() -> None:
    draws = []
    for _ in range(2):
        torch.manual_seed(7)
        np.random.seed(7)
        draws.append(message(method(2, noise_multiplier=1.0), clients_with(2)[0], torch.zeros(2, 100)))
    assert not torch.equal(*draws)


def test_rounds_add_up_to_their_number_times_the_epsilon_of_one() -> None:
    plan = settings("target_epsilon=null", "epsilon_per_round=0.5", "rounds=4").plan(clients_with(5, 3))
    guarantee = plan.guarantee
    assert guarantee.unit is PrivacyUnit.RECORD
    assert guarantee.seen_by_server
    assert plan.record_terms is None
    for rounds in range(1, 5):
        # At δ = 1e-5, ε is a little less than without one.
        assert 0.5 * rounds - 1e-3 < guarantee.epsilon(rounds) < 0.5 * rounds


def test_one_round_costs_what_the_laplace_distribution_says() -> None:
    """Of Laplace noise with ε̄, δ at ε is 1 − e^((ε − ε̄)/2)."""
    changes = ["target_epsilon=null", "epsilon_per_round=2", "delta=0.1"]
    guarantee = settings(*changes).plan(clients_with(5, 3)).guarantee
    assert guarantee.epsilon(1) == pytest.approx(2 + 2 * np.log(0.9), abs=1e-4)


def test_what_is_accounted_is_the_noise_that_is_drawn() -> None:
    """The event has Δ by its own formula: a wrong one here would show as another ε."""
    given = settings("target_epsilon=null", "epsilon_per_round=0.5", "clip_norm=3", "learning_rate=0.2")
    (event,) = given.plan(clients_with(5, 3, 4)).guarantee.released(7)
    assert event == FedAvgLaplace(
        adjacency=Adjacency.REPLACE,
        rounds=7,
        clip_norm=3,
        learning_rate=0.2,
        examples=3,
        scale=2 * 2 * 3 * 0.2 / 3,
    )
    assert event.as_laplace() == Laplace(
        unit=PrivacyUnit.RECORD, adjacency=Adjacency.REPLACE, rounds=7, relative_scale=2
    )


@pytest.mark.parametrize(("rounds", "least"), [(2, 0.499), (200, 0.01)])
def test_a_target_is_used_up_by_all_rounds_together_as_well_as_composition_allows(
    rounds: int, least: float
) -> None:
    given = settings("target_epsilon=1", f"rounds={rounds}")
    guarantee = given.plan(clients_with(5, 3)).guarantee
    assert 0.999 < guarantee.epsilon(rounds) <= 1
    built = given.plan(clients_with(5, 3)).method
    assert isinstance(built, LaplaceFedAvg)
    assert 1 / built.release.relative_scale > least
    guarantee.check_before(rounds)


def test_with_a_target_and_a_rounds_epsilon_the_run_ends_before_the_budget_does() -> None:
    plan = settings("target_epsilon=2", "epsilon_per_round=0.4", "rounds=100").plan(clients_with(5, 3))
    within = plan.guarantee
    assert plan.rounds == 5
    within.check_before(5)
    with pytest.raises(ProblemError) as caught:
        within.check_before(6)
    assert caught.value.problem.code is ErrorCode.PRIVACY_BUDGET


def test_a_round_that_alone_exceeds_the_budget_is_rejected() -> None:
    with pytest.raises(ProblemError) as caught:
        settings("target_epsilon=1", "epsilon_per_round=2").plan(clients_with(5, 3))
    assert caught.value.problem.code is ErrorCode.PRIVACY_BUDGET


@pytest.mark.parametrize(
    "change",
    [
        "noise_multiplier=1", "dropout=true", "codec=nf4", "secure_aggregation={}", "sampling_rule=product",
        "local={learning_rate: 0.1}",
    ],
)  # fmt: skip
def test_settings_that_the_proof_has_no_room_for_are_rejected(change: str) -> None:
    with pytest.raises(ProblemError) as caught:
        settings(change)
    assert caught.value.problem.where.endswith(change.split("=")[0])


def test_what_the_noise_follows_from_is_given() -> None:
    with pytest.raises(ProblemError) as caught:
        settings("target_epsilon=null")
    assert "epsilon_per_round" in caught.value.problem.expected


def test_a_client_with_one_record_is_rejected_by_its_number() -> None:
    with pytest.raises(ProblemError) as caught:
        settings().plan(clients_with(5, 1))
    assert caught.value.problem.code is ErrorCode.CONFIGURATION
    assert caught.value.problem.where == "client 1"
    assert caught.value.problem.found == "1"


def test_a_run_reports_its_unit_writes_no_record_and_counts_messages_of_an_interrupted_round(
    base: Path, data: Path, tmp_path: Path
) -> None:
    changes = ["rounds=3", "target_epsilon=null", "epsilon_per_round=1"]
    with pytest.raises(CutError):
        trained("laplace-fedavg", base, data, tmp_path / "run", changes, watcher=CutOff(5))
    run = trained("laplace-fedavg", base, data, tmp_path / "run", changes, resume=True)
    summary = read_summary(run.path / SUMMARY)
    assert (summary.unit, summary.rounds, summary.resumed) == (PrivacyUnit.RECORD, 3, 1)
    assert summary.epsilon == pytest.approx(4, abs=1e-3)
    metrics = read_metrics(run.path / METRICS)
    assert [line.epsilon for line in metrics] == pytest.approx([1, 3, 4], abs=1e-3)
    assert {line.loss for line in metrics} == {None}
    assert not list(run.path.glob("training_*"))
    assert load_settings(str(run.path / "settings.yaml")) == settings(
        "rounds=3", *changes, "max_input_tokens=32"
    )


def test_a_broken_round_leaves_no_budget_for_all_that_were_planned(
    base: Path, data: Path, tmp_path: Path
) -> None:
    changes = ["target_epsilon=2"]
    with pytest.raises(CutError):
        trained("laplace-fedavg", base, data, tmp_path / "run", changes, watcher=CutOff(5))
    with pytest.raises(ProblemError) as caught:
        trained("laplace-fedavg", base, data, tmp_path / "run", changes, resume=True)
    assert caught.value.problem.code is ErrorCode.PRIVACY_BUDGET
