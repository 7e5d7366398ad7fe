"""Inexact ADMM with Laplace noise does what its equations say, on records whose gradients are known."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.events import AdmmLaplace, Laplace
from evaluator.mechanisms.units import Adjacency, PrivacyUnit
from starter_kit.dp.laplace_release import LaplaceRelease
from starter_kit.federation.local_engine import LocalEngine
from starter_kit.federation.rounds import Client, ClientTask, Engine, Reply, Request, Server
from starter_kit.learning.local_training import State
from starter_kit.methods.laplace_iadmm import LaplaceIADMM, Settings
from starter_kit.reporting.metrics import SUMMARY, read_summary
from starter_kit.runs.progress import Watcher
from starter_kit.runs.resuming import ResumeFolder, TrainingState
from starter_kit.runs.setup import RunSetup
from starter_kit.settings.configuration import load_settings
from tests.starter_kit.cut_off import CutError, CutOff
from tests.starter_kit.quadratics import Quadratics, clients_with, numbers
from tests.starter_kit.toy import STREAM, run_rounds, server
from tests.starter_kit.training_runs import trained

SIZE = 50_000
NO_NOISE = 1e-9


def method(
    records: int,
    clients: int = 2,
    *,
    clip_norm: float = 100.0,
    penalty: float = 0.5,
    noise_multiplier: float = NO_NOISE,
) -> LaplaceIADMM:
    return LaplaceIADMM(LaplaceRelease(clip_norm, noise_multiplier), penalty, records, clients)


def settings(*changes: str) -> Settings:
    loaded = load_settings("laplace-iadmm", changes)
    assert isinstance(loaded, Settings)
    return loaded


def federation(method: LaplaceIADMM, clients: list[Client], records: Tensor) -> Server:
    return server(method, clients, Quadratics(records), torch.zeros(records.shape[1]))


def models(method: LaplaceIADMM, clients: list[Client], records: Tensor, rounds: int) -> list[Tensor]:
    """The model after each round, from zero."""
    run = run_rounds(
        federation(method, clients, records), torch.zeros(records.shape[1]), range(1, rounds + 1)
    )
    return [finished.weights for finished in run]


def client_states(run: Server) -> dict[int, State]:
    assert isinstance(run.engine, LocalEngine)
    return {client: kept.tensors for client, kept in run.engine.states.items()}


def message(
    method: LaplaceIADMM, client: Client, records: Tensor, state: State | None = None, round_number: int = 1
) -> Tensor:
    """What the client sends in a round that starts from zero."""
    kept = {} if state is None else state
    weights = torch.zeros(records.shape[1])
    task = ClientTask(client, round_number, 2, weights, Quadratics(records), STREAM, kept)
    return method.client_update(task).message


def test_two_rounds_come_out_as_computed_by_hand() -> None:
    """Client 0 has 2, client 1 has −1 and 0: I = 3, P = 2; ρ = 1/2. All begins at zero.

    Round 1. Client 0: gradients over I −2/3, so z = 4/3 and λ = −2/3. Client 1: 1/3, so z = −2/3 and λ = 1/3.
    w = ½·(4/3 + 4/3 − 2/3 − 2/3) = 2/3.
    Round 2. Client 0: at its z, (4/3 − 2)/3 = −2/9, so z = 2/3 + 2·(−2/3 + 2/9) = −2/9 and λ = −2/3 + ½·8/9 = −2/9.
    Client 1: (1/3 − 2/3)/3 = −1/9, so z = 2/3 + 2·(1/3 + 1/9) = 14/9 and λ = 1/3 − ½·8/9 = −1/9.
    w = ½·(−2/9 + 4/9 + 14/9 + 2/9) = 1.
    """
    run = federation(method(3), clients_with(1, 2), numbers(2, -1, 0))
    first, second = run_rounds(run, torch.zeros(1), [1, 2])
    assert float(first.weights) == pytest.approx(2 / 3, abs=1e-4)
    assert float(second.weights) == pytest.approx(1, abs=1e-4)
    states = client_states(run)
    assert [float(states[client]["own"]) for client in (0, 1)] == pytest.approx([-2 / 9, 14 / 9], abs=1e-4)
    assert [float(states[client]["dual"]) for client in (0, 1)] == pytest.approx([-2 / 9, -1 / 9], abs=1e-4)


def test_each_records_gradient_is_clipped_in_l1_before_the_sum() -> None:
    """With C = 1: (3, 1) counts as (3/4, 1/4), and (0, −1/2) as it is; ρ = 1/2; of 5 records, these two are here."""
    records = torch.tensor([[3.0, 1.0], [0.0, -0.5]])
    sent = message(method(5, clip_norm=1.0), clients_with(2)[0], records)
    assert sent.tolist() == pytest.approx([2 * 0.75 / 5, 2 * (0.25 - 0.5) / 5], abs=1e-6)


def test_the_gradient_of_every_record_is_taken_by_itself() -> None:
    learner = Quadratics(numbers(1, 2, 3))
    method(3).client_update(ClientTask(clients_with(3)[0], 1, 1, torch.zeros(1), learner, STREAM, {}))
    assert learner.asked == [[0], [1], [2]]


def test_it_finds_the_mean_of_all_records_whoever_has_them() -> None:
    records = numbers(2, -1, 0, 5, 4)
    *_, last = models(method(5, penalty=2.0), clients_with(1, 4), records, 60)
    assert float(last) == pytest.approx(2, abs=1e-3)


def test_server_and_clients_come_to_the_very_same_duals_from_noisy_messages() -> None:
    noisy = method(4, noise_multiplier=1.0, clip_norm=3.0)
    run = federation(noisy, clients_with(3, 1), torch.randn(4, 20))
    for _ in run_rounds(run, torch.zeros(20), range(1, 5)):
        for client, state in client_states(run).items():
            assert torch.equal(state["dual"], run.state[f"dual-{client}"])
    assert len(run.state) == 2


def test_duals_and_own_models_follow_from_what_was_sent() -> None:
    """With noise: w − z is what was sent, with its sign turned, and λ has ρ times the sum of these."""
    noisy = method(2, noise_multiplier=1.0)
    kept: State = {}
    sent = [message(noisy, clients_with(2)[0], torch.randn(2, 6), kept, number) for number in (1, 2, 3)]
    assert torch.allclose(kept["dual"], -0.5 * torch.stack(sent).sum(dim=0), rtol=1e-4)
    assert torch.equal(kept["own"], sent[-1])  # these rounds start from zero


def test_a_client_that_is_asked_again_for_a_round_answers_as_if_it_had_not_been() -> None:
    records, (client,) = torch.randn(3, 5), clients_with(3)
    kept: State = {}
    message(method(3), client, records, kept, 1)
    once = message(method(3), client, records, kept, 2)
    again = message(method(3), client, records, kept, 2)
    assert torch.allclose(once, again, atol=1e-6)
    assert not torch.allclose(again, message(method(3), client, records, kept, 3), atol=1e-3)


@pytest.mark.parametrize("state", [{}, {"round": torch.tensor(1)}, {"round": torch.tensor(4)}])
def test_a_client_whose_state_is_of_another_round_does_not_answer(state: State) -> None:
    with pytest.raises(ValueError, match="client 0 last answered in round"):
        message(method(3), clients_with(3)[0], torch.zeros(3, 1), state, round_number=3)


def test_a_round_needs_every_client(base: Path, data: Path, tmp_path: Path) -> None:
    class WithoutTheLast(LocalEngine):
        def ask(self, requests: Sequence[Request]) -> Iterator[Reply]:
            return super().ask(requests[:-1])

    @contextmanager
    def opened(setup: RunSetup, watcher: Watcher) -> Iterator[Engine]:
        yield WithoutTheLast(setup.participant(watcher.pages))

    with pytest.raises(ProblemError) as caught:
        trained("laplace-iadmm", base, data, tmp_path / "run", open_engine=opened)
    assert caught.value.problem.code is ErrorCode.CLIENTS_LOST
    assert trained("laplace-fedavg", base, data, tmp_path / "other", open_engine=opened).files()


def test_a_run_resumes_from_a_saved_state_as_if_it_had_not_been_interrupted(tmp_path: Path) -> None:
    exact, clients, records = method(4), clients_with(3, 1), torch.randn(4, 5)
    whole = models(exact, clients, records, 4)
    first = federation(exact, clients, records)
    *_, last = run_rounds(first, torch.zeros(5), [1, 2])
    (tmp_path / "unfinished").mkdir()
    folder = ResumeFolder(tmp_path / "unfinished")
    folder.create()
    folder.save(TrainingState(2, last.weights, first.state, first.engine.states))
    saved = folder.load()
    assert saved is not None
    second = federation(exact, clients, records)
    second.state = saved.server
    second.engine.restore(saved.clients)
    *_, resumed = run_rounds(second, saved.weights, [3, 4])
    assert torch.allclose(resumed.weights, whole[-1], atol=1e-5)


def test_replacing_one_record_moves_a_message_by_the_sensitivity_at_most_and_can_reach_it() -> None:
    far = 1e6 * torch.eye(4)
    exact = method(30, clip_norm=2.0, penalty=0.25)
    client = clients_with(3)[0]
    before = message(exact, client, torch.stack([far[0], far[1], far[2]]))
    assert exact.sensitivity == pytest.approx(2 * 2.0 / (0.25 * 30))
    for other in (-far[2], far[3]):
        after = message(exact, client, torch.stack([far[0], far[1], other]))
        assert float((before - after).abs().sum()) == pytest.approx(exact.sensitivity, rel=1e-5)


def has_scale(noise: Tensor, scale: float) -> bool:
    return bool(stats.kstest(noise.double().numpy() / scale, "laplace").pvalue > 1e-7)


def test_the_noise_of_a_message_has_the_scale_of_sensitivity_over_epsilon() -> None:
    """Δ/ε̄ = (2·0.5/(0.25·8))/2 = 1/4."""
    noisy = method(8, clip_norm=0.5, penalty=0.25, noise_multiplier=0.5)
    noise = message(noisy, clients_with(2)[0], torch.zeros(2, SIZE))
    assert has_scale(noise, 0.25)
    assert not has_scale(noise, 0.9 * 0.25)
    assert not has_scale(noise, 1.1 * 0.25)


def test_clients_and_rounds_have_independent_noise() -> None:
    """Where all gradients are zero, the second message is the second noise less the first."""
    noisy, draws = method(4, noise_multiplier=1.0, clip_norm=1e-9), []
    for client in clients_with(2, 2):
        kept: State = {}
        first = message(noisy, client, torch.zeros(4, SIZE), kept, 1)
        draws += [first, message(noisy, client, torch.zeros(4, SIZE), kept, 2) + first]
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


def test_what_is_accounted_is_the_noise_that_is_drawn() -> None:
    """The event has Δ by its own formula: a wrong one here would show as another ε."""
    given = settings("target_epsilon=null", "epsilon_per_round=0.5", "clip_norm=3", "penalty=0.2")
    (event,) = given.plan(clients_with(5, 3, 4)).guarantee.released(7)
    assert isinstance(event, AdmmLaplace)
    assert (event.adjacency, event.clip_norm, event.penalty, event.examples) == (
        Adjacency.REPLACE,
        3,
        0.2,
        12,
    )
    assert event.scale == pytest.approx(2 * 2 * 3 / (0.2 * 12))
    assert event.as_laplace() == Laplace(
        unit=PrivacyUnit.RECORD, adjacency=Adjacency.REPLACE, rounds=7, relative_scale=2
    )
    built = given.plan(clients_with(5, 3, 4)).method
    assert isinstance(built, LaplaceIADMM)
    assert built.release.relative_scale * built.sensitivity == event.scale


def test_a_target_is_used_up_by_all_rounds_together() -> None:
    guarantee = settings("target_epsilon=1", "rounds=3").plan(clients_with(5, 3)).guarantee
    assert 0.999 < guarantee.epsilon(3) <= 1


def test_with_a_target_and_a_rounds_epsilon_the_run_ends_before_the_budget_does() -> None:
    plan = settings("target_epsilon=2", "epsilon_per_round=0.4", "rounds=100").plan(clients_with(5, 3))
    within = plan.guarantee
    assert plan.rounds == 5
    within.check_before(5)
    with pytest.raises(ProblemError) as caught:
        within.check_before(6)
    assert caught.value.problem.code is ErrorCode.PRIVACY_BUDGET


def test_a_run_that_was_interrupted_resumes_and_counts_the_messages_that_were_seen(
    base: Path, data: Path, tmp_path: Path
) -> None:
    changes = ["rounds=3", "target_epsilon=null", "epsilon_per_round=1"]
    with pytest.raises(CutError):
        trained("laplace-iadmm", base, data, tmp_path / "run", changes, watcher=CutOff(5))
    run = trained("laplace-iadmm", base, data, tmp_path / "run", changes, resume=True)
    summary = read_summary(run.path / SUMMARY)
    assert (summary.unit, summary.rounds, summary.resumed) == (PrivacyUnit.RECORD, 3, 1)
    assert summary.epsilon == pytest.approx(4, abs=1e-3)
    assert not list(run.path.glob("training_*"))


def test_a_federation_without_records_is_rejected() -> None:
    with pytest.raises(ProblemError) as caught:
        settings().plan([Client(0, {"Ghost": []}), Client(1, {})])
    assert caught.value.problem.code is ErrorCode.CONFIGURATION
