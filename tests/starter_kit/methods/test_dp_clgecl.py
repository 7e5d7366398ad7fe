"""DP-CLGECL: its equations on numbers worked out by hand, and that its duals follow from what was released."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from evaluator.errors import ProblemError
from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.mechanisms.noise import Noise, Placement
from evaluator.mechanisms.sampling import Poisson
from evaluator.messages.jobs import AccountingResult, CheckStatus, PrivacyRules, Step, TrackRules
from evaluator.pipeline import StepInputs, run_step
from evaluator.records.epsilon import releases
from starter_kit.dp.gaussian_sum import GaussianSum
from starter_kit.federation.client_state import ClientState, LocalState
from starter_kit.federation.local_engine import LocalEngine
from starter_kit.federation.rounds import Client, ClientTask, ClientUpdate, Reply, Request, Server
from starter_kit.learning.local_training import Learner, LocalTraining, State, Trained
from starter_kit.learning.tensors import TrainableTensors
from starter_kit.methods import fl_provider_dp
from starter_kit.methods.dp_clgecl import DPCLGECL, DUAL, MODEL, Settings
from starter_kit.reporting.metrics import SUMMARY, read_summary
from starter_kit.runs.resuming import ResumeFolder, TrainingState
from starter_kit.settings.configuration import load_settings
from tests.starter_kit.cut_off import CutError, CutOff
from tests.starter_kit.methods.test_fl_provider_dp import SIZE, FixedUpdates, has_std, one_provider_each
from tests.starter_kit.toy import STREAM, run_rounds, server
from tests.starter_kit.training_runs import trained

LOCAL = LocalTraining(learning_rate=0.1)
RULES = TrackRules(
    reference="local", test_set="local", clients=3, privacy=PrivacyRules(epsilon=8, delta=1e-5)
)


class Pulls(Learner):
    """Example n pulls every weight from where it is by `shares[n]` of the way to `targets[n]`."""

    def __init__(self, targets: Sequence[float], shares: Sequence[float], size: int = 1) -> None:
        super().__init__(
            TrainableTensors({"w": torch.nn.Parameter(torch.zeros(size))}), lambda _: torch.empty(0)
        )
        self.targets, self.shares = targets, shares

    def train(self, weights, examples, local, stream, state=None, hook=None) -> Trained:
        (example,) = examples
        return Trained(self.shares[example] * (self.targets[example] - weights), None)


CLIENTS = [Client(0, {"a": [0], "b": [1], "c": [2]}), Client(1, {"d": [3]})]
PULLS = Pulls(targets=[1, 2, 3, 16], shares=[0.5, 0.5, 0.5, 0.25])
START = torch.zeros(1)
NO_NOISE = Noise.model_construct(multiplier=0.0, placement=Placement.CLIENT_FULL)


def method(
    *, clip_norm: float = 100.0, noise: GaussianSum | None = None, clients: int = 2, providers: int = 2
) -> DPCLGECL:
    """Without noise unless it is given; all clients and providers take part."""
    return DPCLGECL(
        Poisson(provider_rate=1.0),
        noise or GaussianSum(clip_norm, NO_NOISE),
        divisor=float(clients * providers),
        local=LOCAL,
        client_step=1 / providers,
    )


def settings(*changes: str) -> Settings:
    loaded = load_settings("dp-clgecl", changes)
    assert isinstance(loaded, Settings)
    return loaded


def engine_of(whole: Server) -> LocalEngine:
    assert isinstance(whole.engine, LocalEngine)
    return whole.engine


def duals(whole: Server) -> list[float]:
    return [float(state.tensors[DUAL]) for state in engine_of(whole).states.values()]


def client_update(
    method: DPCLGECL, client: Client, weights: Tensor, learner: Learner, state: State
) -> ClientUpdate:
    return method.client_update(ClientTask(client, 1, 2, weights, learner, STREAM, state))


class Listening:
    """An engine that keeps what was sent."""

    def __init__(self, engine: LocalEngine) -> None:
        self.engine = engine
        self.states, self.apart, self.clients = engine.states, engine.apart, engine.clients
        self.unsent: list[int] = []
        self.down: list[bytes] = []
        self.up: list[bytes] = []
        self.restore = engine.restore

    def ask(self, requests: Sequence[Request]) -> Iterator[Reply]:
        self.down += [request.payload for request in requests]
        for reply in self.engine.ask(requests):
            self.up.append(reply.payload)
            yield reply


def vector(payload: bytes) -> Tensor:
    return torch.frombuffer(bytearray(payload), dtype=torch.float32)


def test_three_rounds_worked_out_by_hand() -> None:
    """Three providers and one: two are expected of a client, so that a client's model moves by half of its sum."""
    whole = server(method(clip_norm=7.0), CLIENTS, PULLS, START)
    rounds = run_rounds(whole, START, [1, 2, 3])
    # From 0: the clients' sums are 0.5 + 1 + 1.5 and 4, their models 1.5 and 2.
    assert float(next(rounds).weights) == (3 + 4) / 4 == 1.75
    assert duals(whole) == [0, 0]
    # λ is 1.75 - 1.5 and 1.75 - 2.
    sums = (-0.375 + 0.25) + (0.125 + 0.25) + (0.625 + 0.25), 3.5625 - 0.25
    second = 1.75 + (1.125 + 3.3125) / 4
    assert sums == (1.125, 3.3125)
    assert float(next(rounds).weights) == second
    assert duals(whole) == [0.25, -0.25]
    # λ is 0.25 + second - (1.75 + 0.5625) and -0.25 + second - (1.75 + 1.65625).
    dual = 0.796875
    sums = 0.5 * (6 - 3 * second) + 3 * dual, 0.25 * (16 - second) - dual
    assert float(next(rounds).weights) == second + sum(sums) / 4
    assert duals(whole) == [dual, -dual]
    models = [float(state.tensors[MODEL]) for state in engine_of(whole).states.values()]
    assert models == [second + sums[0] / 2, second + sums[1] / 2]


def test_a_client_that_was_away_counts_from_its_last_own_model() -> None:
    client, state = CLIENTS[0], dict[str, Tensor]()
    client_update(method(), client, torch.tensor([2.0]), PULLS, state)
    own = 2 + (0.5 * (1 - 2) + 0.5 * (2 - 2) + 0.5 * (3 - 2)) / 2
    assert float(state[MODEL]) == own
    client_update(method(), client, torch.tensor([11.0]), PULLS, state)
    assert float(state[DUAL]) == 11 - own


def test_update_and_dual_are_clipped_together() -> None:
    learner = FixedUpdates(torch.tensor([[3.0, 0.0]]))
    kept = {DUAL: torch.tensor([0.0, 3.0]), MODEL: torch.zeros(2)}
    weights = torch.tensor([0.0, 1.0])  # λ = (0, 3) + (0, 1) - 0; the update with it is (3, 4), of norm 5
    (client,) = one_provider_each(1, 1)
    update = client_update(method(clip_norm=1.0, providers=1), client, weights, learner, kept)
    torch.testing.assert_close(update.message, torch.tensor([0.6, 0.8]), rtol=0, atol=2.0**-10)
    torch.testing.assert_close(kept[MODEL], torch.tensor([0.6, 1.8]), rtol=0, atol=2.0**-10)


def test_one_provider_moves_a_message_by_at_most_the_clip_norm_whatever_the_dual() -> None:
    updates = torch.randn(5, 50, generator=torch.Generator().manual_seed(3))
    (everybody,) = one_provider_each(1, 5)
    without = Client(0, {name: everybody.providers[name] for name in list(everybody.providers)[:-1]})
    for length in (0.0, 1.0, 1e6):
        messages = [
            client_update(
                method(clip_norm=0.25, clients=1, providers=5),
                client,
                torch.zeros(50),
                FixedUpdates(updates),
                {DUAL: torch.full((50,), length), MODEL: torch.zeros(50)},
            ).message
            for client in (everybody, without)
        ]
        assert 0.2 < float((messages[0] - messages[1]).norm()) <= 0.25 + 1e-6


def test_an_update_that_is_not_finite_is_left_out_and_reaches_no_later_round() -> None:
    learner = FixedUpdates(torch.tensor([[float("nan")], [0.5]]))
    state: State = {}
    (client,) = one_provider_each(1, 2)
    exact = method(clients=1)
    assert float(client_update(exact, client, START, learner, state).message) == 0.5
    assert float(state[MODEL]) == 0.25
    assert exact.discarded == {0: 1}


def test_each_client_adds_noise_of_sigma_times_clip_norm_to_its_own_message() -> None:
    noisy = method(noise=GaussianSum(0.25, Noise(multiplier=2.0, placement=Placement.CLIENT_FULL)))
    learner = FixedUpdates(torch.zeros(4, SIZE))
    whole = server(noisy, CLIENTS, learner, torch.zeros(SIZE))
    listening = Listening(engine_of(whole))
    only = replace(whole, engine=listening).round(1, torch.zeros(SIZE))
    first, second = (vector(payload) for payload in listening.up)
    assert has_std(first, 0.5)
    assert has_std(second, 0.5)
    assert has_std(first - second, 0.5 * 2**0.5)
    assert has_std(only.aggregate.total, 0.5 * 2**0.5)
    assert not has_std(first, 0.6)


@dataclass(frozen=True)
class Hiding(GaussianSum):
    """Noise that happens to make the same messages of any data: what is released doesn't depend on them."""

    draws: torch.Generator = field(default_factory=lambda: torch.Generator().manual_seed(3))

    def noised_by_client(self, message: Tensor, clients: int) -> Tensor:
        return torch.randn(message.shape, generator=self.draws)


def test_duals_of_different_data_are_the_same_where_the_messages_were() -> None:
    kept, messages = [], []
    for targets in ([1, 2, 3, 16], [-500, 7, 0, float("nan")]):
        noise = Hiding(1.0, Noise(multiplier=1.0, placement=Placement.CLIENT_FULL))
        whole = server(method(noise=noise), CLIENTS, Pulls(targets, [0.5] * 4, size=6), torch.zeros(6))
        listening = Listening(engine_of(whole))
        list(run_rounds(replace(whole, engine=listening), torch.zeros(6), range(1, 6)))
        kept.append([engine_of(whole).states[client].tensors for client in (0, 1)])
        messages.append(listening.up)
    assert messages[0] == messages[1]
    for client in (0, 1):
        assert kept[0][client].keys() == {DUAL, MODEL}
        assert float(kept[0][client][DUAL].norm()) > 0.1
        for name in (DUAL, MODEL):
            assert torch.equal(kept[0][client][name], kept[1][client][name])


def test_whoever_reads_the_messages_can_compute_the_duals_which_are_never_sent() -> None:
    noisy = method(noise=GaussianSum(1.0, Noise(multiplier=1.5, placement=Placement.CLIENT_FULL)))
    whole = server(noisy, CLIENTS, Pulls([1, 2, 3, 16], [0.5] * 4, size=6), torch.zeros(6))
    listening = Listening(engine_of(whole))
    seen = [torch.zeros(6), torch.zeros(6)]
    for number, _ in enumerate(run_rounds(replace(whole, engine=listening), torch.zeros(6), range(1, 5))):
        for client in (0, 1):
            if number:
                before = vector(listening.down[-4 + client]) + vector(listening.up[-4 + client]) / 2
                seen[client] = seen[client] + vector(listening.down[-2 + client]) - before
            assert torch.equal(seen[client], engine_of(whole).states[client].tensors[DUAL])
    assert float(seen[0].norm()) > 0.1
    sent = [*listening.down, *listening.up]
    assert {len(payload) for payload in sent} == {4 * 6}
    assert not any(dual.numpy().tobytes() in sent for dual in seen)


def test_a_run_that_is_resumed_ends_with_the_same_bits(tmp_path: Path) -> None:
    *_, last = run_rounds(server(method(), CLIENTS, PULLS, START), START, range(1, 7))

    broken = server(method(), CLIENTS, PULLS, START)
    *_, third = run_rounds(broken, START, [1, 2, 3])
    folder = ResumeFolder(tmp_path)
    folder.create()
    folder.save(TrainingState(3, third.weights, broken.state, engine_of(broken).states))
    state = folder.load()
    assert state is not None

    def end_of(kept: dict[int, ClientState]) -> Tensor:
        again = server(method(), CLIENTS, PULLS, START)
        engine_of(again).restore(kept)
        *_, end = run_rounds(again, state.weights, [4, 5, 6])
        return end.weights

    assert torch.equal(end_of(dict(state.clients)), last.weights)
    assert not torch.equal(end_of({0: LocalState(), 1: LocalState()}), last.weights)


def test_the_server_takes_the_mean_of_the_clients_own_models() -> None:
    clients = one_provider_each(4, 5)
    built = settings("max_weight_noise=0.05").plan(clients).method
    assert isinstance(built, DPCLGECL)
    assert built.server_learning_rate < settings().server_learning_rate
    learner = FixedUpdates(torch.ones(20, 50))
    whole = server(built, clients, learner, torch.zeros(50))
    for finished in run_rounds(whole, torch.zeros(50), [1, 2, 3]):
        models = torch.stack([state.tensors[MODEL] for state in engine_of(whole).states.values()])
        torch.testing.assert_close(finished.weights, models.mean(dim=0))


@pytest.mark.parametrize(
    ("changes", "expected_clients", "expected_providers"),
    [
        ((), 4, 5),
        (("sampling.provider_rate=0.5",), 4, 2.5),
        (("sampling.provider_rate=0.6", "sampling.client_rate=0.5"), 2, 3),
        (("sampling={type: fixed_size, clients_per_round: 2, providers_per_client: 3}",), 2, 3),
    ],
)
def test_divisors_are_the_expected_numbers(
    changes: Sequence[str], expected_clients: float, expected_providers: float
) -> None:
    built = (
        settings(*changes, "server_learning_rate=0.5", "max_weight_noise=null")
        .plan(one_provider_each(4, 5))
        .method
    )
    assert isinstance(built, DPCLGECL)
    assert built.client_step == pytest.approx(0.5 / expected_providers)
    assert built.divisor == pytest.approx(expected_clients * expected_providers)


@pytest.mark.parametrize(
    "changes", [["placement=server"], ["placement=client_share", "secure_aggregation.tolerated_losses=0"]]
)
def test_noise_that_does_not_cover_a_single_message_is_rejected_with_the_reason(changes: list[str]) -> None:
    with pytest.raises(ProblemError) as caught:
        settings(*changes)
    assert "updates without noise" in caught.value.problem.expected
    assert "client_full" in caught.value.problem.expected


@pytest.mark.parametrize("changes", [[], ["sampling.client_rate=0.5", "sampling.provider_rate=0.5"]])
def test_the_guarantee_is_that_of_fl_provider_dp_whose_messages_are_seen_one_by_one(
    changes: list[str],
) -> None:
    clients = one_provider_each(4, 5)
    # As dp-clgecl has it.
    common = ["rounds=4", "sampling.provider_rate=1", "server_learning_rate=6", "max_weight_noise=0.25"]
    loaded = load_settings("fl-provider-dp", [*common, *changes, "placement=client_full"])
    assert isinstance(loaded, fl_provider_dp.Settings)
    plain, dual = loaded.plan(clients), settings(*changes).plan(clients)
    assert dual.guarantee.seen_by_server
    assert dual.guarantee.released(3) == plain.guarantee.released(3)
    assert dual.record_terms == plain.record_terms


@pytest.mark.parametrize(
    ("config", "changes"),
    [
        ("dp-clgecl", ["sampling.client_rate=0.7", "sampling.provider_rate=0.5", "rounds=6"]),
        ("dp-clgecl-momentum", ["rounds=4"]),
    ],
)
def test_the_evaluator_accepts_what_a_run_leaves(
    config: str, changes: list[str], base: Path, data: Path, tmp_path: Path
) -> None:
    inputs = StepInputs(trained(config, base, data, tmp_path / "run", changes).files(), RULES, reference=base)
    for step in (Step.VALIDATE, Step.COMMUNICATION):
        run_step(step, inputs, lambda done, total: None)
    result = run_step(Step.ACCOUNTING, inputs, lambda done, total: None).result
    assert isinstance(result, AccountingResult)
    flagged = [check for check in result.checks if check.status is CheckStatus.FLAGGED]
    assert flagged == []
    assert {"record.models", "record.noise_size", "record.noise_reuse"} <= {
        check.id for check in result.checks if check.status is CheckStatus.PASSED
    }
    assert result.within_budget
    assert result.epsilon == pytest.approx(result.epsilon_claimed, rel=1e-3)


def test_a_round_that_was_interrupted_is_spent_and_the_clients_keep_their_duals(
    base: Path, data: Path, tmp_path: Path
) -> None:
    changes = ["rounds=3", "target_epsilon=null", "noise_multiplier=6"]
    with pytest.raises(CutError):
        trained("dp-clgecl", base, data, tmp_path / "run", changes, watcher=CutOff(5))
    left = ResumeFolder(tmp_path / "run.unfinished").load()
    assert left is not None
    assert left.round == 1
    assert all(
        isinstance(kept, LocalState) and kept.tensors.keys() == {DUAL, MODEL}
        for kept in left.clients.values()
    )
    run = trained("dp-clgecl", base, data, tmp_path / "run", changes, resume=True)
    record = run.record(max_rounds=3)
    (event,) = releases(record, SamplingRule.TWO_STAGE)
    assert event.rounds == 4
    spent = read_summary(run.path / SUMMARY).epsilon
    assert spent is not None
    assert spent > record.run.claimed_epsilon
