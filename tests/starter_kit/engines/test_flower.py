"""The engine over Flower, on a grid in this process; on real processes in test_flower_processes.py."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import (
    AccountingResult,
    ArtifactKind,
    CommunicationResult,
    PrivacyRules,
    Step,
    TrackRules,
)
from evaluator.pipeline import StepInputs, run_step
from evaluator.records.annex import read_annex
from starter_kit.engines.flower.agreement import Agreement
from starter_kit.engines.flower.client_app import ClientHost
from starter_kit.engines.flower.engine import FlowerEngine
from starter_kit.engines.flower.node_registry import NodeRegistry
from starter_kit.engines.flower.server_app import over_grid
from starter_kit.engines.flower.state_stores import InContext, InMemory
from starter_kit.federation.client_state import LocalState
from starter_kit.federation.plain_aggregation import PlainAggregation
from starter_kit.federation.rounds import Aggregation, Method, Participant, Request, Round, Server
from starter_kit.federation.secure_aggregation import SecureAggregation
from starter_kit.learning.local_training import LocalTraining
from starter_kit.methods.fedavg import FedAvg
from starter_kit.reporting.metrics import METRICS, read_metrics
from starter_kit.runs.progress import Watcher
from starter_kit.runs.setup import RunSetup
from starter_kit.runs.training import OpenEngine
from starter_kit.settings.run_settings import RunSettings
from tests.starter_kit.cut_off import CutError, CutOff
from tests.starter_kit.engines.engine_runs import quick_settings, run, trained_tensor
from tests.starter_kit.engines.in_process_grid import InProcessGrid, as_server
from tests.starter_kit.toy import DIMENSION, STREAM, Toy, wire_from

AGREED = Agreement(kit="1", settings="2", base="3", clients="4")
LOCAL = LocalTraining(learning_rate=0.05, batch_size=4)


@pytest.fixture(autouse=True)
def _server() -> Iterator[None]:
    with as_server():
        yield


class Federation:
    """A toy federation of four clients: 0 and 1 at node 10, 2 at node 20, 3 at node 30."""

    def __init__(
        self,
        method: Method | None = None,
        aggregation: Callable[[Toy], Aggregation] = lambda toy: PlainAggregation(wire_from(toy.weights)),
        *,
        needs_all: bool = False,
        counts: bool = True,
    ) -> None:
        self.toy = Toy()
        self.method = method or FedAvg(4, LOCAL)
        self.aggregation = aggregation(self.toy)
        self.grid = InProcessGrid()
        self.log: list[str] = []
        self.counts = counts
        for number, clients in ((10, [0, 1]), (20, [2]), (30, [3])):
            self.grid.add(number, self.host(clients))
        self.registry = NodeRegistry(self.grid, range(4), AGREED, self.log.append)
        self.engine = FlowerEngine(
            self.grid,
            self.registry,
            timeout_s=0.5,
            needs_all=needs_all,
            log=self.log.append,
        )

    def host(self, clients: Sequence[int]) -> ClientHost:
        theirs = [client for client in self.toy.clients if client.id in clients]
        participant = Participant(self.method, theirs, self.toy.learner, self.aggregation, STREAM)
        return ClientHost(participant, AGREED, self.counts)

    def ask(self, clients: Sequence[int], number: int = 1) -> list[int]:
        """The clients that reply."""
        return sorted(self.replies(clients, number))

    def replies(self, clients: Sequence[int], number: int = 1) -> Iterator[int]:
        """The clients that reply, as their replies arrive."""
        model = wire_from(self.toy.weights).pack_model(self.toy.weights)
        for reply in self.engine.ask([Request(number, client, len(clients), model) for client in clients]):
            yield reply.client

    def round(self) -> Round:
        server = Server(self.method, self.engine, self.aggregation, STREAM)
        only = server.round(1, self.toy.weights)
        return only


@pytest.fixture
def federation() -> Federation:
    made = Federation()
    made.registry.await_all(5)
    return made


def test_a_run_over_flower_gives_what_a_local_one_gives(base: Path, data: Path, tmp_path: Path) -> None:
    # The optimizer keeps statistics from round to round: without what the nodes keep, round 2 would differ.
    changes = [
        "clients_per_round=3",
        "rounds=3",
        "local.optimizer=shampoo",
        "local.shampoo.statistics_every=1",
    ]
    settings = quick_settings("fedavg", [*changes, "local.shampoo.roots_every=1", "local.learning_rate=1.0"])
    grid = InProcessGrid()
    for number, clients, states in ((10, [2, 0], InMemory()), (20, [1], InContext())):
        setup = RunSetup(settings, data=data, base=base)
        grid.add(number, replace(ClientHost.of(setup, clients, Watcher().pages), states=states))
    apart = run(settings, base, data, tmp_path / "apart", over_grid(grid, wait_s=5, timeout_s=30))
    together = run(settings, base, data, tmp_path / "together")
    assert torch.allclose(trained_tensor(apart), trained_tensor(together), rtol=0, atol=1e-5)
    logs = [(folder.path / "communication_log.csv").read_text() for folder in (apart, together)]
    assert sorted(logs[0].splitlines()) == sorted(logs[1].splitlines())
    assert [line.providers for line in read_metrics(apart.path / METRICS)] == [7, 7, 7]
    rules = TrackRules(reference="local", test_set="local", clients=3)
    inputs = StepInputs(apart.files(), rules, reference=base)
    counted = run_step(Step.COMMUNICATION, inputs, lambda *_: None).result
    assert isinstance(counted, CommunicationResult)
    assert (counted.counting, counted.rounds_folded) == ("counted", 3)


def test_what_travels_is_the_payload_and_a_few_hundred_bytes(federation: Federation) -> None:
    federation.grid.sent_bytes.clear()
    federation.ask([2])
    down, up = federation.grid.sent_bytes
    assert 4 * DIMENSION < down < 4 * DIMENSION + 1500
    assert 4 * DIMENSION < up < 4 * DIMENSION + 1500


def test_loss_and_counts_travel_only_where_the_server_may_know_them() -> None:
    for public in (True, False):
        federation = Federation(counts=public)
        federation.registry.await_all(5)
        finished = federation.round()
        assert set(finished.sampled.values()) == ({5} if public else {0})
        assert (finished.loss is not None) is public


def test_the_text_of_an_error_stays_at_the_node() -> None:
    class Talkative(FedAvg):
        def client_update(self, task):
            if task.client.id == 2:
                raise ValueError(f"provider {next(iter(task.client.providers))} is odd")
            return super().client_update(task)

    federation = Federation(Talkative(4, LOCAL))
    federation.registry.await_all(5)
    assert federation.ask([1, 2]) == [1]
    assert federation.log[-1] == "round 1: client 2 is lost (ValueError)"


def test_a_reply_with_an_impossible_count_is_rejected() -> None:
    class Miscounting(FedAvg):
        def client_update(self, task):
            return replace(super().client_update(task), sampled=-1 if task.client.id == 2 else 2**40)

    federation = Federation(Miscounting(4, LOCAL))
    federation.registry.await_all(5)
    assert federation.ask([1, 2]) == []
    assert federation.log[-1] == "round 1: client 2 is lost (not a reply)"


def test_what_a_node_says_of_an_error_cannot_steer_the_servers_terminal() -> None:
    odd = type("\x1b[2J" + 1000 * "x", (Exception,), {})

    class Odd(FedAvg):
        def client_update(self, task):
            raise odd

    federation = Federation(Odd(4, LOCAL))
    federation.registry.await_all(5)
    assert federation.ask([1]) == []
    assert federation.log[-1].isprintable()
    assert len(federation.log[-1]) < 300


def test_a_second_reply_to_the_same_request_is_ignored(federation: Federation) -> None:
    class Twice(InProcessGrid):
        def pull_messages(self, message_ids):
            return [message for message in super().pull_messages(message_ids) for _ in range(2)]

    federation.engine.grid = Twice(federation.grid.nodes)
    assert federation.ask([1, 2]) == [1, 2]


def test_secure_aggregation_works_over_nodes() -> None:
    plain = Toy().server(FedAvg(4, LOCAL)).round(1, Toy().weights)
    federation = Federation(None, lambda toy: SecureAggregation(wire_from(toy.weights), 1.0), needs_all=True)
    federation.registry.await_all(5)
    assert torch.allclose(federation.round().weights, plain.weights, atol=1e-6)
    assert federation.engine.apart
    for node in federation.grid.nodes.values():  # no secret is left
        assert all(node.host.states.load(node.context, client) == LocalState() for client in range(4))


def test_a_silent_node_is_lost_for_the_round_and_asked_again_once_it_has_replied(
    federation: Federation,
) -> None:
    node = federation.grid.nodes[20]
    node.mute = True
    assert federation.ask([0, 2, 3], 1) == [0, 3]
    assert federation.log[-1] == "round 1: client 2 is lost (no reply within 0.5 s)"
    pushed = len(federation.grid.sent_bytes)
    assert federation.ask([0, 2], 2) == [0]  # at once: it is not even asked
    assert len(federation.grid.sent_bytes) == pushed + 2
    node.mute = False
    assert federation.ask([0, 2], 3) == [0, 2]
    assert "client 2: node 20 is back" in federation.log


def test_a_node_that_is_lost_in_the_middle_of_a_round_is_not_waited_for(federation: Federation) -> None:
    federation.grid.nodes[30].mute = True
    model = wire_from(federation.toy.weights).pack_model(federation.toy.weights)
    replies = federation.engine.ask([Request(1, client, 2, model) for client in (2, 3)])
    assert next(replies).client == 2
    del federation.grid.nodes[30]
    assert list(replies) == []
    assert federation.log[-1] == "round 1: client 3 is lost (the node is unavailable)"
    assert federation.ask([2, 3], 2) == [2]
    assert federation.log[-1] == "round 2: client 3 is lost (its node is away)"


def test_a_node_that_was_started_again_takes_its_clients_over(federation: Federation) -> None:
    del federation.grid.nodes[20]
    assert federation.ask([2, 3], 1) == [3]
    federation.grid.add(21, federation.host([2]))
    assert federation.ask([2, 3], 2) in ([3], [2, 3])  # its handshake may take longer than the other's reply
    assert federation.ask([2, 3], 3) == [2, 3]


def test_a_round_without_any_node_is_rejected(federation: Federation) -> None:
    federation.grid.nodes.clear()
    with pytest.raises(ProblemError) as rejected:
        federation.round()
    assert rejected.value.problems[0].code is ErrorCode.CLIENTS_LOST
    assert federation.log[-1] == "round 1: client 3 is lost (its node is away)"


def test_a_round_that_needs_all_waits_for_a_node_that_is_away() -> None:
    federation = Federation(needs_all=True)
    federation.registry.await_all(5)
    node = federation.grid.nodes.pop(20)
    replies = federation.replies([2, 3])
    assert next(replies) == 3
    federation.grid.nodes[21] = node
    assert list(replies) == [2]


def test_clients_without_a_node_are_listed() -> None:
    federation = Federation()
    del federation.grid.nodes[10]
    with pytest.raises(ProblemError, match=r"none for client 0, 1 after 0\.3 s"):
        federation.registry.await_all(0.3)


def test_a_node_with_other_settings_takes_no_part_and_both_sides_report_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    federation = Federation()
    node = federation.grid.nodes[20]
    node.host = replace(node.host, agreement=replace(AGREED, settings="5", base="6"))
    with pytest.raises(ProblemError, match="none for client 2"):
        federation.registry.await_all(0.3)
    log = "\n".join(federation.log)
    assert "the node of client 2, settings" in log
    assert "the node of client 2, base" in log
    assert "this node, settings" in capsys.readouterr().err


def test_server_and_nodes_agree_on_all_but_the_device(base: Path, data: Path, tmp_path: Path) -> None:
    settings = quick_settings()
    agreement = Agreement.of(RunSetup(settings, data=data, base=base))
    elsewhere = RunSetup(settings, data=data, base=base)
    elsewhere.settings = settings.model_copy(update={"device": "cuda"})
    agreement.check(Agreement.of(elsewhere), "a node")
    elsewhere.settings = settings.model_copy(update={"seed": 1})
    with pytest.raises(ProblemError, match="a node, settings"):
        agreement.check(Agreement.of(elsewhere), "a node")


def over_nodes(settings: RunSettings, base: Path, data: Path, **given: float) -> OpenEngine:
    """Clients at two nodes in this process."""
    grid = InProcessGrid()
    for number, clients in ((10, [2, 0]), (20, [1])):
        grid.add(number, ClientHost.of(RunSetup(settings, data=data, base=base), clients, Watcher().pages))
    return over_grid(grid, wait_s=5, timeout_s=30)


def test_a_private_run_with_a_trusted_server_ends_with_a_record_that_the_evaluator_accepts(
    base: Path, data: Path, tmp_path: Path
) -> None:
    settings = quick_settings("fl-provider-dp", ["sampling.provider_rate=0.5"])
    folder = run(settings, base, data, tmp_path / "run", over_nodes(settings, base, data))
    rules = TrackRules(
        reference="local", test_set="local", clients=3, privacy=PrivacyRules(epsilon=8, delta=1e-5)
    )
    result = run_step(
        Step.ACCOUNTING, StepInputs(folder.files(), rules, reference=base), lambda *_: None
    ).result
    assert isinstance(result, AccountingResult)
    assert result.within_budget
    annex = read_annex(folder.file(ArtifactKind.TRAINING_ANNEX), clients=3, max_rounds=10)
    assert any(sum(sampled.values()) for sampled in annex.sampled)
    assert all(line.providers is None and line.loss is None for line in read_metrics(folder.path / METRICS))


def test_a_client_whose_update_is_masked_reports_no_number_of_its_own(
    base: Path, data: Path, tmp_path: Path
) -> None:
    settings = quick_settings("fedavg", ["clients_per_round=3", "secure_aggregation={bound: 1.0}"])
    folder = run(settings, base, data, tmp_path / "run", over_nodes(settings, base, data))
    for line in read_metrics(folder.path / METRICS):
        assert (line.clients, line.providers, line.loss) == (3, None, None)


@pytest.mark.parametrize(
    "changes", [["placement=client_full"], ["placement=client_share", "secure_aggregation={}"]]
)
def test_a_private_run_whose_server_is_not_trusted_is_rejected_as_it_would_learn_the_annex(
    base: Path, data: Path, tmp_path: Path, changes: list[str]
) -> None:
    settings = quick_settings("fl-provider-dp", changes)
    with pytest.raises(ProblemError, match="trusted with what is in it") as rejected:
        run(settings, base, data, tmp_path / "run", over_grid(InProcessGrid(), wait_s=1, timeout_s=1))
    assert rejected.value.problem.code is ErrorCode.CONFIGURATION
    assert f"placement={rejected.value.problem.found}" == changes[0]
    with pytest.raises(ProblemError, match="trusted with what is in it"):  # whatever server would ask it
        ClientHost.of(RunSetup(settings, data=data, base=base), [0], Watcher().pages)


def test_a_resumed_run_is_rejected_only_if_its_clients_kept_something() -> None:
    class Keeping(FedAvg):
        def client_update(self, task):
            task.state["dual"] = task.weights + task.round
            return super().client_update(task)

    for method, resumes in ((FedAvg(4, LOCAL), True), (Keeping(4, LOCAL), False)):
        federation = Federation(method)
        federation.registry.await_all(5)
        if resumes:
            assert federation.ask([0, 1], 3) == [0, 1]
        else:
            with pytest.raises(ProblemError, match="starts with its first round"):
                federation.ask([0, 1], 3)


def test_a_run_whose_clients_kept_something_at_their_nodes_is_not_resumed_without_them(
    base: Path, data: Path, tmp_path: Path
) -> None:
    def interrupted(name: str, *changes: str) -> RunSettings:
        settings = quick_settings("fedavg", ["clients_per_round=3", "rounds=3", *changes])
        nodes = over_nodes(settings, base, data)
        with pytest.raises(CutError):
            run(settings, base, data, tmp_path / name, nodes, watcher=CutOff(5))
        return settings

    nothing = interrupted("nothing")
    assert run(nothing, base, data, tmp_path / "nothing", resume=True).files()
    statistics = interrupted("statistics", "local.optimizer=shampoo")
    with pytest.raises(ProblemError) as rejected:
        run(statistics, base, data, tmp_path / "statistics", resume=True)
    assert rejected.value.problem.code is ErrorCode.CLIENTS_LOST
    assert rejected.value.problem.found == "no state of client 0, 1, 2 on this machine"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_machine_without_a_gpu_says_so(base: Path, data: Path) -> None:
    with pytest.raises(ProblemError, match="finds no GPU"):
        RunSetup(quick_settings("fedavg", ["device=cuda"]), data=data, base=base)


def test_a_node_may_only_have_clients_of_the_federation(base: Path, data: Path) -> None:
    with pytest.raises(ProblemError, match="some of 0, 1, 2"):
        ClientHost.of(RunSetup(quick_settings(), data=data, base=base), [7], Watcher().pages)


def test_what_clients_keep_is_of_one_run_only() -> None:
    context = InProcessGrid().add(10, Federation().host([0])).context
    states = InMemory()
    assert states.load(context, 0) == LocalState()
    states.save(context, 0, LocalState({"dual": torch.ones(2)}))
    states.load(context, 0).tensors["another"] = torch.zeros(2)  # not saved
    assert states.load(context, 0).tensors.keys() == {"dual"}
    context.run_id = 2
    assert states.load(context, 0) == LocalState()
