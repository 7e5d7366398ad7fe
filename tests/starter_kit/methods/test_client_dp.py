"""What the privacy proof says of client-level DP, checked on the released weights of a toy federation."""

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.events import Gaussian, TwoStage
from evaluator.mechanisms.noise import Noise
from evaluator.mechanisms.units import PrivacyUnit
from starter_kit.dp.gaussian_sum import GaussianSum
from starter_kit.federation.rounds import Client, ClientTask, Message
from starter_kit.learning.local_training import LocalTraining
from starter_kit.methods.client_dp import ClientDP, Settings
from starter_kit.reporting.metrics import METRICS, SUMMARY, read_metrics, read_summary
from starter_kit.settings.configuration import load_settings
from tests.starter_kit.cut_off import CutError, CutOff
from tests.starter_kit.quadratics import Quadratics, clients_with
from tests.starter_kit.toy import STREAM, Toy, aggregated, run_rounds, server
from tests.starter_kit.training_runs import trained

SIZE = 20_000
NO_NOISE = 1e-9
WHOLE_STEP = LocalTraining(
    optimizer="sgd", learning_rate=1, batch_size=1000
)  # from any w to the mean of the records


def method(
    clients: int = 4,
    *,
    client_rate: float = 1.0,
    clip_norm: float = 100.0,
    noise_multiplier: float = NO_NOISE,
    local: LocalTraining = WHOLE_STEP,
) -> ClientDP:
    return ClientDP(
        client_rate, GaussianSum(clip_norm, Noise(multiplier=noise_multiplier)), clients * client_rate, local
    )


def settings(*changes: str) -> Settings:
    loaded = load_settings("client-dp", changes)
    assert isinstance(loaded, Settings)
    return loaded


def after_a_round(method: ClientDP, clients: list[Client], records: Tensor) -> Tensor:
    """The model after one round from zero."""
    start = torch.zeros(records.shape[1])
    only = server(method, clients, Quadratics(records), start).round(1, start)
    return only.weights


def has_std(noise: Tensor, std: float) -> bool:
    statistic = float((noise.double() / std).square().sum())
    return bool(min(stats.chi2.cdf(statistic, len(noise)), stats.chi2.sf(statistic, len(noise))) > 1e-7)


def test_a_round_comes_out_as_computed_by_hand() -> None:
    """Client 0 moves to the mean (3, 0) of its records, clipped to (2, 0); client 1 moves to (0, 1); all by 1/2."""
    records = torch.tensor([[2.0, 0.0], [4.0, 0.0], [0.0, 1.0]])
    found = after_a_round(method(2, clip_norm=2.0), clients_with(2, 1), records)
    assert found.tolist() == pytest.approx([1.0, 0.5], abs=2.0**-10)


def test_a_client_trains_on_all_its_examples() -> None:
    learner = Quadratics(torch.randn(5, 3))
    method().client_update(ClientTask(clients_with(5)[0], 1, 1, torch.zeros(3), learner, STREAM, {}))
    assert sorted(example for batch in learner.asked for example in batch) == [0, 1, 2, 3, 4]


def test_one_client_moves_the_sum_by_at_most_the_clip_norm_whatever_its_records() -> None:
    exact, clients = method(4, clip_norm=0.25), clients_with(2, 2, 2, 2)
    records = torch.zeros(8, 50)
    without = after_a_round(exact, clients, records)
    records[2:4] = 1e6 * torch.randn(50)
    moved = 4 * (after_a_round(exact, clients, records) - without)
    assert float(moved.norm()) == pytest.approx(0.25, rel=2.0**-9)


def test_a_client_without_data_sends_zeros() -> None:
    update = method().client_update(
        ClientTask(Client(3, {"p": []}), 1, 1, torch.ones(4), Quadratics(torch.ones(1, 4)), STREAM, {})
    )
    assert update.message.tolist() == [0.0] * 4


def test_an_update_that_is_not_finite_counts_as_none() -> None:
    records = torch.zeros(4, 3)
    records[1, 0] = float("nan")
    records[3] = 1.0
    assert after_a_round(method(4), clients_with(1, 1, 1, 1), records).tolist() == pytest.approx(
        [0.25] * 3, abs=1e-5
    )


def test_the_server_adds_noise_of_sigma_times_clip_norm_once_whoever_takes_part() -> None:
    noisy = method(4, clip_norm=0.5, noise_multiplier=3.0)
    for messages in (0, 1, 4):
        sent = [Message(client, torch.zeros(SIZE)) for client in range(messages)]
        aggregate = aggregated(noisy, torch.zeros(SIZE), iter(sent))
        assert has_std(aggregate.total, 1.5)
        assert not has_std(aggregate.total, 0.9 * 1.5)
        assert not has_std(aggregate.total, 1.1 * 1.5)
        assert torch.allclose(aggregate.weights, aggregate.total / 4)


def test_rounds_have_independent_noise_that_follows_from_no_seed() -> None:
    draws = []
    for noisy in [method(noise_multiplier=1.0)] * 2 + [method(noise_multiplier=1.0)]:
        torch.manual_seed(7)
        np.random.seed(7)
        draws.append(aggregated(noisy, torch.zeros(SIZE), []).total.numpy())
    assert np.abs(np.corrcoef(np.stack(draws))[np.triu_indices(3, 1)]).max() < 6 / np.sqrt(SIZE)


def test_a_client_sends_no_noise_of_its_own() -> None:
    noisy = method(noise_multiplier=1.0)
    update = noisy.client_update(
        ClientTask(clients_with(1)[0], 1, 1, torch.zeros(3), Quadratics(torch.ones(1, 3)), STREAM, {})
    )
    assert update.message.tolist() == [1.0] * 3
    assert update.loss is None


def test_sums_are_divided_by_the_expected_number_not_the_realized_one() -> None:
    half = method(4, client_rate=0.5)
    for messages, expected in ((0, 0.0), (1, 0.5), (2, 1.0), (4, 2.0)):
        sent = [Message(client, torch.ones(1)) for client in range(messages)]
        assert float(aggregated(half, torch.zeros(1), sent).weights) == pytest.approx(expected, abs=1e-5)


def test_every_client_flips_a_coin_of_its_own_in_every_round() -> None:
    """Counts of 10 clients have the binomial's mean and variance, which a fixed number wouldn't; nor a shared coin."""
    some, rounds = method(10, client_rate=0.3), 4000
    chosen = np.zeros((rounds, 10))
    for number in range(rounds):
        chosen[number, some.choose_clients(range(10), STREAM)] = 1
    counts = chosen.sum(axis=1)
    assert abs(counts.mean() - 3) < 6 * np.sqrt(2.1 / rounds)
    assert counts.var() == pytest.approx(2.1, abs=6 * 2.1 * np.sqrt(2 / rounds))
    assert np.abs(chosen.mean(axis=0) - 0.3).max() < 6 * np.sqrt(0.21 / rounds)
    together = np.vstack([chosen[:-1].T, chosen[1:].T])
    assert np.abs(np.asarray(np.corrcoef(together))[np.triu_indices(20, 1)]).max() < 6 / np.sqrt(rounds)


def test_rounds_without_clients_happen_and_are_noised() -> None:
    rare = method(4, client_rate=1e-9, noise_multiplier=1.0)
    toy = Toy()
    only = toy.server(rare).round(1, toy.weights)
    assert only.messages == []
    assert bool((only.aggregate.total != 0).all())


def test_it_learns_where_many_clients_agree() -> None:
    toy = Toy(clients=60, providers=2)
    noisy = method(
        60,
        clip_norm=0.5,
        noise_multiplier=2.0,
        local=LocalTraining(learning_rate=0.1, optimizer="sgd", epochs=3),
    )
    *_, last = run_rounds(toy.server(noisy), toy.weights, range(1, 16))
    assert toy.distance(last.weights) < 0.3 * toy.distance(toy.weights)


def test_no_amplification_is_claimed_for_what_the_log_shows() -> None:
    inner = Gaussian(unit=PrivacyUnit.CLIENT, effective_noise_multiplier=3)
    plan = settings("client_rate=0.5", "noise_multiplier=3").plan(clients_with(*[1] * 10))
    guarantee = plan.guarantee
    assert guarantee.released(7) == [
        TwoStage(unit=PrivacyUnit.CLIENT, rounds=7, client_rate=0.5, within=inner)
    ]
    everyone = settings("client_rate=1", "noise_multiplier=3").plan(clients_with(*[1] * 10)).guarantee
    assert everyone.released(7) == [inner.model_copy(update={"rounds": 7})]
    assert guarantee.unit is PrivacyUnit.CLIENT
    assert plan.record_terms is None
    assert not guarantee.seen_by_server


def test_a_round_costs_the_gaussian_that_a_client_that_takes_part_faces() -> None:
    """δ(ε) of a round is q times that of the bare Gaussian mechanism, Φ(1/2σ − εσ) − e^ε·Φ(−1/2σ − εσ)."""
    guarantee = settings("client_rate=0.5", "noise_multiplier=3").plan(clients_with(*[1] * 10)).guarantee
    epsilon, sigma = guarantee.epsilon(1), 3.0
    bare = stats.norm.cdf(0.5 / sigma - epsilon * sigma) - np.exp(epsilon) * stats.norm.cdf(
        -0.5 / sigma - epsilon * sigma
    )
    assert 0.5 * bare == pytest.approx(1e-5, rel=1e-3)


def test_as_many_rounds_are_run_as_fit_into_the_budget_and_no_more() -> None:
    plan = settings("target_epsilon=4").plan(clients_with(*[1] * 10))
    guarantee, rounds = plan.guarantee, plan.rounds
    assert 1 < rounds < 100
    assert guarantee.epsilon(rounds) <= 4 < guarantee.epsilon(rounds + 1)
    guarantee.check_before(rounds)
    with pytest.raises(ProblemError) as caught:
        guarantee.check_before(rounds + 1)
    assert caught.value.problem.code is ErrorCode.PRIVACY_BUDGET
    assert settings("target_epsilon=4", "rounds=2").plan(clients_with(*[1] * 10)).rounds == 2


def test_noise_that_allows_no_round_is_rejected() -> None:
    with pytest.raises(ProblemError) as caught:
        settings("target_epsilon=1", "noise_multiplier=0.5").plan(clients_with(*[1] * 10))
    assert caught.value.problem.code is ErrorCode.PRIVACY_BUDGET


@pytest.mark.parametrize("delta", [0.08, 0.1, 0.5])
def test_a_delta_that_one_client_in_n_could_be_given_away_with_is_rejected(delta: float) -> None:
    clients = clients_with(*[1] * 10)
    assert settings("delta=0.079").plan(clients).method
    with pytest.raises(ProblemError) as caught:
        settings(f"delta={delta}").plan(clients)
    assert caught.value.problem.where == "delta"
    assert "0.0794" in caught.value.problem.expected


@pytest.mark.parametrize(
    "change",
    [
        "target_epsilon=null",
        "noise_multiplier=null",
        "codec=nf4",
        "secure_aggregation={}",
        "sampling_rule=product",
        "client_rate=0",
    ],
)
def test_settings_that_the_proof_has_no_room_for_are_rejected(change: str) -> None:
    with pytest.raises(ProblemError) as caught:
        settings(change)
    assert caught.value.problem.code is ErrorCode.CONFIGURATION
    assert caught.value.problem.where.endswith(change.split("=")[0])


def test_a_run_stops_at_its_budget_reports_its_unit_and_writes_no_record(
    base: Path, data: Path, tmp_path: Path
) -> None:
    changes = ["rounds=50", "target_epsilon=3", "client_rate=0.7", "delta=1.0e-3"]
    with pytest.raises(CutError):
        trained("client-dp", base, data, tmp_path / "run", changes, watcher=CutOff(4))
    run = trained("client-dp", base, data, tmp_path / "run", changes, resume=True)
    summary, metrics = read_summary(run.path / SUMMARY), read_metrics(run.path / METRICS)
    planned = settings(*changes).plan(clients_with(1, 1, 1))
    assert 1 < len(metrics) == summary.rounds == planned.rounds < 50
    assert (summary.unit, summary.budget, summary.resumed) == (PrivacyUnit.CLIENT, 3, 1)
    assert (
        summary.epsilon == planned.guarantee.epsilon(planned.rounds) <= 3
    )  # what was interrupted was never released
    assert {line.loss for line in metrics} == {None}
    assert not list(run.path.glob("training_*"))
