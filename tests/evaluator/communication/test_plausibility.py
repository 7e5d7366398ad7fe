"""Plausibility of a communication log: honest logs pass, logs that claim too little or don't add up are flagged."""

from collections.abc import Collection, Iterable
from pathlib import Path
from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from evaluator.checkpoints.weight_changes import TensorChange
from evaluator.communication.log import LogEntry, read_log, write_log
from evaluator.communication.plausibility import Traffic, bytes_needed, checks, transfer_bytes
from evaluator.messages.jobs import ArtifactKind, Check, CheckStatus, CommunicationResult, Step, TrackRules
from evaluator.pipeline import StepInputs, run_step
from evaluator.records.check_table import CHECKS

CLIENTS = 10
EVERYBODY = range(CLIENTS)
FULL = [TensorChange("w", (1000, 800), 800_000, rank=None)]
ADAPTER = [TensorChange("w", (1000, 800), 800_000, rank=6)]
ADAPTER_PARAMETERS = 6 * 1800


def training(
    rounds: Iterable[int], clients: Collection[int] = range(2), *, size: int = 3_200_000
) -> list[LogEntry]:
    return [
        LogEntry(number, sender, receiver, size)
        for number in rounds
        for client in clients
        for sender, receiver in ((-1, client), (client, -1))
    ]


def results(path: Path, log: list[LogEntry], changes: list[TensorChange]) -> dict[str, Check]:
    write_log(path, log)
    traffic = Traffic()
    totals = read_log(path, clients=CLIENTS, max_rounds=100_000, on_exchange=traffic.add)
    return {check.id: check for check in checks(totals, traffic, changes, clients=CLIENTS)}


def flagged(found: dict[str, Check]) -> set[str]:
    return {name for name, check in found.items() if check.status is CheckStatus.FLAGGED}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.csv"


def test_every_check_is_described_and_none_of_them_rejects(path: Path) -> None:
    assert all(CHECKS[name].code is None for name in results(path, [], FULL))


@pytest.mark.parametrize(
    ("size", "changes"),
    [
        (3_200_000, FULL),  # float32
        (450_000, FULL),  # NF4
        (6_400_000, FULL),  # float32, and one optimizer state
        (4 * ADAPTER_PARAMETERS, ADAPTER),
        (3_200_000, ADAPTER),  # the whole model, though a change of low rank came out
    ],
)
def test_an_honest_log_passes(path: Path, size: int, changes: list[TensorChange]) -> None:
    found = results(path, training(range(1, 11), size=size), changes)
    assert {check.status for check in found.values()} == {CheckStatus.PASSED}


def test_the_log_of_an_untrained_model_is_not_flagged(path: Path) -> None:
    found = results(path, [], [])
    assert flagged(found) == set()
    assert found["log.least_bytes"].status is CheckStatus.PASSED
    assert bytes_needed([]) == 0


def test_messages_that_changed_nothing_are_not_flagged(path: Path) -> None:
    assert flagged(results(path, training([1, 2]), [])) == set()


def test_a_trained_model_without_messages_is_flagged(path: Path) -> None:
    assert flagged(results(path, [], FULL)) == {"log.least_bytes"}


def test_bits_for_each_changed_parameter_are_shown(path: Path) -> None:
    found = results(path, training([1], size=4 * ADAPTER_PARAMETERS), ADAPTER)["log.message_sizes"].found
    assert found.startswith("43200 bytes down (32 bits for each changed parameter), 43200 bytes up (32 bits")


def test_a_log_that_claims_less_than_the_change_needs_is_flagged(path: Path) -> None:
    needed = transfer_bytes(FULL)
    assert needed == 450_000
    assert flagged(results(path, training([1], [0], size=needed), FULL)) == set()
    found = results(path, training([1], [0], size=needed - 1), FULL)
    assert flagged(found) == {"log.least_bytes"}
    assert (found["log.least_bytes"].expected, found["log.least_bytes"].found) == (
        "at least 450000 bytes each way",
        "449999 bytes down, 449999 bytes up",
    )


def test_a_change_of_low_rank_needs_the_bytes_of_two_factors() -> None:
    assert transfer_bytes(ADAPTER) == 6_075
    assert bytes_needed(ADAPTER) == 2 * 6_075
    assert bytes_needed([*ADAPTER, *FULL]) == bytes_needed(ADAPTER) + bytes_needed(FULL)


def test_no_matrix_needs_more_than_its_entries() -> None:
    assert transfer_bytes([TensorChange("w", (8, 8), 64, rank=8)]) == transfer_bytes(
        [TensorChange("w", (64,), 64, rank=None)]
    )


def test_messages_without_bytes_are_flagged(path: Path) -> None:
    assert flagged(results(path, training([1, 2], size=0), FULL)) == {"log.message_sizes", "log.least_bytes"}


def test_many_tiny_messages_are_flagged_for_their_size(path: Path) -> None:
    assert flagged(results(path, training(range(1, 101), EVERYBODY, size=1000), FULL)) == {
        "log.message_sizes"
    }


@pytest.mark.parametrize(("down", "up"), [(True, False), (False, True)])
def test_messages_one_way_only_are_flagged(path: Path, down: bool, up: bool) -> None:
    log = [entry for entry in training([1, 2]) if (entry.sender == -1) == down]
    found = results(path, log, FULL)
    assert flagged(found) == {"log.directions", "log.message_sizes", "log.least_bytes"}
    assert found["log.directions"].where == f"round 1, client 0: {down:d} down, {up:d} up"
    assert found["log.rounds"].status is CheckStatus.NOT_APPLICABLE


def test_a_first_download_that_is_not_in_the_log_is_flagged(path: Path) -> None:
    log = training([1, 2, 3])
    found = results(path, [entry for entry in log if entry.round > 1 or entry.sender != -1], FULL)
    assert flagged(found) == {"log.directions"}
    assert found["log.directions"].found == "2 of 6 exchanges went one way"


def test_another_number_of_messages_is_flagged(path: Path) -> None:
    log = training([1, 2])
    found = results(path, [*log[:-1], LogEntry(2, 1, -1, 1_600_000), LogEntry(2, 1, -1, 1_600_000)], FULL)
    assert flagged(found) == {"log.rounds"}
    assert found["log.rounds"].where == "round 2, client 1: 1 down, 2 up"


def test_messages_of_varying_size_are_flagged_and_shown(path: Path) -> None:
    log = [*training([1]), *training([2], size=3_100_000)]
    found = results(path, log, FULL)
    assert flagged(found) == {"log.message_sizes"}
    assert found["log.message_sizes"].found.startswith("3100000 to 3200000 bytes down")


def test_messages_larger_than_any_method_needs_are_flagged(path: Path) -> None:
    assert flagged(results(path, training([1], size=6_400_001), FULL)) == {"log.message_sizes"}


@pytest.mark.parametrize(
    ("rounds", "clients", "unusual"),
    [
        ([*range(1, 6), *range(7, 11)], range(CLIENTS), True),  # everybody in nine rounds, nobody in one
        ([*range(1, 6), *range(7, 11)], range(2), False),  # 1 round in 8 is empty at two clients of ten
        ([1, 100], range(1), False),  # at 1 client round in 50, most rounds are
        ([1, 100_000], range(CLIENTS), False),
        ([*range(1, 1000), 2000], range(5), True),
    ],
)
def test_empty_rounds_are_flagged_where_sampling_does_not_explain_them(
    path: Path, rounds: list[int], clients: range, unusual: bool
) -> None:
    assert flagged(results(path, training(rounds, clients), FULL)) == ({"log.rounds"} if unusual else set())


@pytest.mark.parametrize("client_rate", [0.02, 0.2, 0.5])
def test_sampling_by_independent_coins_is_hardly_ever_flagged(path: Path, client_rate: float) -> None:
    random = Random(1)
    sampled = [
        [(number, client) for number in range(1, 31) for client in EVERYBODY if random.random() < client_rate]
        for _ in range(200)
    ]
    logs = [
        [message for number, client in run for message in training([number], [client])] for run in sampled
    ]
    assert sum("log.rounds" in flagged(results(path, log, FULL)) for log in logs) <= 2


@given(
    rounds=st.lists(st.sets(st.integers(0, CLIENTS - 1), min_size=1), min_size=1, max_size=8),
    size=st.integers(450_000, 6_400_000),
    data=st.data(),
)
def test_a_regular_log_passes_and_is_flagged_once_a_message_is_gone(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[set[int]], size: int, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("log") / "log.csv"
    log = [
        message
        for number, clients in enumerate(rounds, start=1)
        for message in training([number], clients, size=size)
    ]
    assert flagged(results(path, log, FULL)) == set()
    log.remove(data.draw(st.sampled_from(log)))
    assert "log.directions" in flagged(results(path, log, FULL))


def test_the_communication_step_holds_the_log_against_the_weights(tmp_path: Path, path: Path) -> None:
    weights = torch.randn(40, 30, generator=torch.Generator().manual_seed(1))
    save_file({"w": weights, "frozen": weights.clone()}, tmp_path / "model.safetensors")
    save_file({"w": weights + torch.ones(40, 30), "frozen": weights}, tmp_path / "checkpoint.safetensors")
    write_log(path, training([1, 2], size=200))
    inputs = StepInputs(
        {
            ArtifactKind.COMMUNICATION_LOG: path,
            ArtifactKind.CHECKPOINT: tmp_path / "checkpoint.safetensors",
        },
        TrackRules(reference="r", test_set="t", clients=CLIENTS),
        reference=tmp_path,
    )
    result = run_step(Step.COMMUNICATION, inputs, lambda _done, _total: None).result
    assert isinstance(result, CommunicationResult)
    assert (result.rounds, result.messages, result.bytes_total) == (2, 8, 1200)
    assert result.bytes_needed == 2 * 40  # a change of rank 1: 70 numbers of 4.5 bits, once each way
    assert {check.id: check.status for check in result.checks} == dict.fromkeys(
        ["log.directions", "log.rounds", "log.message_sizes", "log.least_bytes"], CheckStatus.PASSED
    )
