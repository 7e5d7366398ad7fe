"""The states of a model between the stages of its rounds, with exact and with packed messages."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor

from starter_kit.data.forms import FormSettings, generate
from starter_kit.runs.setup import RunSetup
from starter_kit.settings.configuration import load_settings
from starter_kit.weights import tiny_vt5
from tests.studies.reproduction.ablations.rows import STAGED_RUNS, STAGES, Stage, StagedRun
from tests.studies.reproduction.ablations.stages import Reached, staged_rounds

EXACT_ONE, EXACT_TWO, NF4_ONE, NF4_TWO = STAGED_RUNS
Reachable = Mapping[tuple[int, Stage], Reached]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    generate(folder, folder, FormSettings(providers=10, clients=10, valid_forms=2, test_forms=2))
    return folder


def setup_of(run: StagedRun, data: Path) -> RunSetup:
    changes = [*run.run.changes, "local.epochs=2"]
    return RunSetup(load_settings(str(run.run.config_file), changes), data=data, base=tiny_vt5.FOLDER)


def reached_by(setup: RunSetup) -> Reachable:
    return {(reached.round, reached.stage): reached for reached in staged_rounds(setup)}


def mean_of(reached: Reached) -> Tensor:
    return torch.stack(reached.models).mean(0)


@pytest.fixture(scope="module", params=STAGED_RUNS, ids=lambda run: run.name)
def of_run(request: pytest.FixtureRequest, data: Path) -> tuple[StagedRun, RunSetup, Reachable]:
    setup = setup_of(request.param, data)
    return request.param, setup, reached_by(setup)


def test_every_client_has_a_model_until_aggregation(
    of_run: tuple[StagedRun, RunSetup, Reachable],
) -> None:
    run, _, reached = of_run
    assert list(reached) == STAGES
    assert all(
        len(at.models) == (1 if at.stage is Stage.AGGREGATION else run.clients) for at in reached.values()
    )


def test_the_first_download_is_the_initial_model(of_run: tuple[StagedRun, RunSetup, Reachable]) -> None:
    _, setup, reached = of_run
    assert all(torch.equal(model, setup.model.start) for model in reached[1, Stage.DOWNLOAD].models)


@pytest.mark.parametrize("number", [1, 2])
def test_aggregation_is_the_mean_of_what_was_uploaded(
    of_run: tuple[StagedRun, RunSetup, Reachable], number: int
) -> None:
    _, _, reached = of_run
    (model,) = reached[number, Stage.AGGREGATION].models
    torch.testing.assert_close(model, mean_of(reached[number, Stage.UPLOAD]))


def test_messages_have_one_size_and_are_counted_as_they_are_sent(
    of_run: tuple[StagedRun, RunSetup, Reachable],
) -> None:
    _, _, reached = of_run
    totals = [reached[stage].bytes_total for stage in STAGES]
    first = totals[0]
    assert totals == [times * first for times in (1, 1, 2, 2, 3, 3, 4, 4)]


@pytest.mark.parametrize("run", [EXACT_ONE, EXACT_TWO], ids=lambda run: run.name)
def test_full_precision_changes_no_model_on_its_way(run: StagedRun, data: Path) -> None:
    reached = reached_by(setup_of(run, data))
    (before,) = reached[1, Stage.AGGREGATION].models
    assert all(torch.equal(model, before) for model in reached[2, Stage.DOWNLOAD].models)
    for number in (1, 2):
        trained, uploaded = (reached[number, stage].models for stage in (Stage.FINETUNING, Stage.UPLOAD))
        assert all(map(torch.equal, trained, uploaded))


@pytest.mark.parametrize("number", [1, 2])
def test_nf4_rounds_what_is_uploaded(data: Path, number: int) -> None:
    reached = reached_by(setup_of(NF4_TWO, data))
    trained, uploaded = (reached[number, stage].models for stage in (Stage.FINETUNING, Stage.UPLOAD))
    for before, after in zip(trained, uploaded, strict=True):
        assert 0 < (after - before).norm() < before.norm() / 10


def test_a_mean_of_two_packed_updates_is_rounded_again_and_one_of_them_hardly(data: Path) -> None:
    one, two = (reached_by(setup_of(run, data)) for run in (NF4_ONE, NF4_TWO))
    moved = [
        (mean_of(reached[2, Stage.DOWNLOAD]) - mean_of(reached[1, Stage.AGGREGATION])).norm()
        for reached in (one, two)
    ]
    assert moved[0] < moved[1] / 1000


def test_nf4_sends_seven_times_fewer_bytes(data: Path) -> None:
    exact, packed = (
        reached_by(setup_of(run, data))[2, Stage.AGGREGATION].bytes_total for run in (EXACT_ONE, NF4_ONE)
    )
    assert 7.1 < exact / packed < 7.2
