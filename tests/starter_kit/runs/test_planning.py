"""What a run is said to take beforehand, against what it then takes."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.messages.jobs import ArtifactKind
from starter_kit.reporting.metrics import SUMMARY, read_summary
from starter_kit.runs.forecast import (
    ACTIVATIONS,
    ACTIVATIONS_OF_PARTS,
    PROGRAM_BYTES,
    Disk,
    Forecast,
    Memory,
    Privacy,
    Room,
    Timing,
    Traffic,
    advice,
    optimizer_bytes,
    shampoo_bytes,
)
from starter_kit.runs.planning import as_values, forecast
from starter_kit.runs.results import scored_questions
from starter_kit.runs.setup import RunSetup
from starter_kit.settings.configuration import load_settings
from tests.starter_kit.plugins.examples import example
from tests.starter_kit.training_runs import trained

BUDGETS = (1, 4, 8)
QUICK = ["rounds=2", "max_input_tokens=32"]
ONE_STEP = "local.max_steps=1"
GB = 10**9

WELL = Forecast(
    experiment="run",
    method="fedavg",
    parameters=300,
    trained=200,
    traffic=Traffic(rounds=5, first_bytes=800, down_bytes=800, up_bytes=400, clients=2, most_clients=2),
    privacy=None,
    memory=Memory(
        model_bytes=2 * GB,
        gradient_bytes=GB,
        optimizer_bytes=2 * GB,
        activations_bytes=8 * GB,
        vectors_bytes=GB,
        states_bytes=0,
        texts_bytes=0,
    ),
    timing=None,
    disk=Disk(features_bytes=40 * GB, run_bytes=GB),
    room=Room(memory=20 * GB, device=None, disk=50 * GB),
)
PRIVATE = Privacy(
    unit="provider",
    delta=1e-5,
    epsilon=5.0,
    product=3.0,
    noise_multiplier=1.0,
    recorded=True,
    needed={1: 3.25, 4: 1.25},
)


def planned(config: str, base: Path, data: Path, changes: list[str], *, measure: bool = False) -> Forecast:
    setup = RunSetup(load_settings(config, [*QUICK, *changes]), data=data, base=base)
    return forecast(setup, data, BUDGETS, measure=measure)


def changed(found: Forecast, *, budgets: tuple[int, ...] = BUDGETS) -> list[str]:
    return advice(found, micro_batch_size=8, features="float32", budgets=budgets)


@pytest.mark.parametrize(
    ("config", "changes"),
    [
        ("fedavg", [ONE_STEP]),
        ("lora-nf4", [ONE_STEP]),
        # The first download is free, and messages go beside the model.
        (example("sign"), [ONE_STEP]),
        (example("scaffold"), [ONE_STEP]),
        ("fl-provider-dp", [ONE_STEP]),
        ("laplace-fedavg", []),
    ],
)
def test_bytes_and_epsilon_are_those_of_the_run(
    base: Path, data: Path, tmp_path: Path, config: str, changes: list[str]
) -> None:
    found = planned(config, base, data, changes)
    run = trained(config, base, data, tmp_path / "run", changes)
    summary = read_summary(tmp_path / "run" / SUMMARY)
    assert found.traffic.expected_bytes == summary.bytes_total
    assert found.trained * (2 if config.endswith("scaffold.yaml") else 1) == summary.parameters_sent
    if summary.epsilon is None:
        assert found.privacy is None
    else:
        assert found.privacy is not None
        assert found.privacy.epsilon == summary.epsilon
        assert found.privacy.recorded == (ArtifactKind.TRAINING_RECORD in run.files())


def test_epsilon_is_given_under_both_rules_with_the_noise_that_each_budget_needs(
    base: Path, data: Path
) -> None:
    changes = [ONE_STEP, "noise_multiplier=0.4", "target_epsilon=null", "sampling.client_rate=0.5"]
    found = planned("fl-provider-dp", base, data, changes).privacy
    assert found is not None
    assert found.product is not None
    assert found.product < found.epsilon
    assert found.budget(BUDGETS) is None
    sigma = found.needed[8]
    again = planned("fl-provider-dp", base, data, [*changes, f"noise_multiplier={sigma}"]).privacy
    assert again is not None
    assert again.budget(BUDGETS) == 8
    assert again.epsilon == pytest.approx(8, rel=1e-3)


def test_a_plan_counts_kept_models_and_what_clients_keep(base: Path, data: Path) -> None:
    plain = planned("fedavg", base, data, [])
    kept = planned("fedavg", base, data, ["checkpoints.every=1"])
    assert kept.disk.run_bytes - plain.disk.run_bytes == 2 * 4 * plain.parameters
    assert plain.memory.states_bytes == 0
    for config in ("plugins/topk", example("scaffold")):
        one, two = (
            planned(config, base, data, [f"clients_per_round={clients}", "checkpoints.local_steps=0"])
            for clients in (1, 2)
        )
        assert one.memory.states_bytes == 4 * plain.trained
        assert two.memory.states_bytes == 2 * 4 * plain.trained
        # The state and the reply of one client more.
        assert two.disk.run_bytes - one.disk.run_bytes == 2 * 4 * plain.trained


def test_a_plan_counts_the_scoring_of_rounds(base: Path, data: Path) -> None:
    scored = ["rounds=5", "evaluate_every=2", "evaluate_questions=4"]
    setup = RunSetup(load_settings("fedavg", [*QUICK, *scored]), data=data, base=base)
    # Rounds 2 and 4 on the sample, and the last on all.
    assert scored_questions(setup) == 4 + 4 + 12
    timing = forecast(setup, data, BUDGETS).timing
    assert timing is not None
    assert timing.total_s == 5 * timing.round_s + timing.scoring_s
    assert timing.scoring_s > 0


def test_a_measured_plan_has_times_and_memory(base: Path, data: Path) -> None:
    for config in ("fedavg", "dp-lora"):
        found = planned(config, base, data, [], measure=True)
        assert found.timing is not None
        assert min(found.timing.step_s, found.timing.pages_s, found.timing.round_s) > 0
        assert found.memory.activations_bytes > 10_000
    values = as_values(found, ["change this"])
    assert values["changes"] == ["change this"]
    assert values["bytes_expected"] == found.traffic.expected_bytes


@pytest.mark.parametrize(
    ("dropout", "factor"), [("true", ACTIVATIONS_OF_PARTS / ACTIVATIONS), ("false", 1.0)]
)
def test_an_example_takes_more_memory_where_a_cpu_computes_a_step_in_parts_under_dropout(
    base: Path, data: Path, dropout: str, factor: float
) -> None:
    changes = ["local.batch_size=8", f"dropout={dropout}"]
    whole, halves = (
        planned("fedavg", base, data, [*changes, f"compute.micro_batch_size={size}"], measure=True)
        for size in (8, 4)
    )
    expected = whole.memory.activations_bytes / 2 * factor
    assert halves.memory.activations_bytes == pytest.approx(expected, rel=1e-6)


def test_a_method_that_computes_gradients_of_single_questions_has_a_step_for_each(
    base: Path, data: Path
) -> None:
    setup = RunSetup(load_settings("laplace-fedavg", ["max_input_tokens=32"]), data=data, base=base)
    timing = forecast(setup, data, BUDGETS).timing
    assert timing is not None
    assert timing.round_s == pytest.approx(len(setup.dataset.questions) * timing.step_s)


def test_the_time_of_a_round_is_that_of_its_steps_and_of_what_is_done_for_each_provider() -> None:
    timing = Timing.of(100, 50, 3, step_s=0.2, provider_s=0.1, pages_s=7)
    assert (timing.round_s, timing.total_s, timing.pages_s) == (25, 75, 7)


@pytest.mark.parametrize(
    ("optimizer", "momentum", "numbers"), [("adamw", 0, 3), ("sgd", 0, 1), ("sgd", 0.9, 2)]
)
def test_optimizers_keep_as_many_numbers_as_they_do(optimizer: str, momentum: float, numbers: int) -> None:
    gradient = 4 * 17
    assert gradient + optimizer_bytes([[3, 4], [5]], optimizer, momentum) == 4 * 17 * numbers


def test_a_step_has_its_optimizers_state_after_its_activations_and_preconditioners_beside_them() -> None:
    memory = replace(WELL.memory, texts_bytes=GB, preconditioners_bytes=5 * GB)
    # The gradient, the beginning and the change; activations are more than the optimizer's state.
    assert memory.step_bytes == PROGRAM_BYTES + (2 + 1 + 3 + 5 + 8) * GB
    slow = replace(memory, optimizer_bytes=9 * GB)
    assert slow.step_bytes == memory.step_bytes + GB
    # Adapters: reading the base weights takes more than a step.
    small = replace(memory, gradient_bytes=0, activations_bytes=0, optimizer_bytes=0, preconditioners_bytes=0)
    assert small.step_bytes == PROGRAM_BYTES + 2 * 2 * GB
    assert memory.device_bytes == (2 + 1 + 2 + 5 + 8) * GB
    private = replace(memory, round_bytes=2 * GB, clipping_bytes=2 * GB)
    assert private.device_bytes == memory.device_bytes + 2 * GB
    assert replace(private, clipping_bytes=17 * GB).device_bytes == (2 + 2 + 17) * GB


def test_preconditioners_are_two_matrices_for_each_side_that_is_not_too_long() -> None:
    assert shampoo_bytes([[3, 4], [5], [9000, 2]]) == 4 * 2 * (9 + 16 + 25 + 1 + 4)


def test_nothing_is_advised_where_all_is_well() -> None:
    assert changed(WELL) == []


def test_a_step_that_does_not_fit_is_split() -> None:
    small = replace(WELL, room=replace(WELL.room, memory=11 * GB))
    # Not 4, though half of it would fit: under dropout an example takes more in parts.
    assert changed(small) == ["A step doesn't fit into memory: --set compute.micro_batch_size=3"]
    smaller = replace(WELL, room=replace(WELL.room, memory=int(7.5 * GB)))
    assert "checkpoint_activations=true" in changed(smaller)[0]
    smallest = replace(WELL, room=replace(WELL.room, memory=5 * GB))
    assert "lora" in changed(smallest)[0]


def test_on_a_gpu_its_own_memory_decides() -> None:
    assert changed(replace(WELL, room=replace(WELL.room, memory=3 * GB, device=14 * GB))) == []
    found = changed(replace(WELL, room=replace(WELL.room, device=9 * GB)))
    assert found == ["A step doesn't fit into memory: --set compute.micro_batch_size=4"]


def test_features_that_do_not_fit_on_the_disk_are_halved() -> None:
    assert "features=float16" in changed(replace(WELL, room=replace(WELL.room, disk=30 * GB)))[0]


def test_a_run_over_every_budget_is_advised_how_to_rank() -> None:
    over = replace(WELL, privacy=replace(PRIVATE, epsilon=9.5, needed={1: 3.25, 8: 1.25}))
    assert changed(over)[0] == "ε = 9.5 is over every budget: track 2 rejects such a record."
    assert "target_epsilon=8" in changed(over)[2]
    assert "noise multiplier 1.25" in changed(over)[2]
    assert changed(replace(WELL, privacy=PRIVATE)) == []
    assert PRIVATE.budget(BUDGETS) == 8


SETS = re.compile(r"--set (\S+?)(?=,? |,?$)")
WEAK = ["noise_multiplier=0.4", "target_epsilon=null", "sampling.client_rate=0.5"]


@pytest.mark.parametrize(
    "changes",
    [
        [*WEAK, "sampling_rule=product"],
        # Within a budget by either rule.
        ["noise_multiplier=1", "target_epsilon=null", "sampling.client_rate=0.5", "sampling_rule=product"],
        ["noise_multiplier=5", "target_epsilon=null", "delta=0.01"],
        [*WEAK, "sampling_rule=product", "delta=0.01"],
        ["noise_multiplier=200", "target_epsilon=null", "rounds=10001"],
    ],
)
def test_a_run_that_track_2_would_reject_ranks_with_every_line_of_advice(
    base: Path, data: Path, changes: list[str]
) -> None:
    found = planned("fl-provider-dp", base, data, changes)
    lines = [line for line in changed(found) if "--set" in line]
    assert lines
    for line in lines:
        followed = planned("fl-provider-dp", base, data, [*changes, *SETS.findall(line)])
        assert changed(followed) == []
        assert followed.privacy is not None
        assert followed.privacy.budget(BUDGETS) is not None


def test_what_writes_no_record_has_no_board_of_track_2() -> None:
    found = changed(replace(WELL, privacy=replace(PRIVATE, unit="client", recorded=False)))
    assert found == ["The privacy of one client has no board: this run can be submitted to track 1 only."]
