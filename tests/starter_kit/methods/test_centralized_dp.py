"""Centralized DP training is FL-PROVIDER-DP in a federation of one: what that makes of clients, noise and record."""

from pathlib import Path

import pytest
import torch

from evaluator.errors import ProblemError
from evaluator.mechanisms.events import PoissonGaussian
from evaluator.mechanisms.sampling import Poisson
from evaluator.messages.jobs import (
    AccountingResult,
    ArtifactKind,
    CheckStatus,
    PrivacyRules,
    Step,
    TrackRules,
)
from evaluator.pipeline import StepInputs, run_step
from starter_kit.federation.rounds import Client
from starter_kit.methods import fl_provider_dp
from starter_kit.methods.centralized_dp import Settings
from starter_kit.methods.fl_provider_dp import ProviderDP
from starter_kit.settings.configuration import load_settings
from tests.starter_kit.methods.test_fl_provider_dp import SIZE, FixedUpdates, has_std, one_provider_each
from tests.starter_kit.toy import server
from tests.starter_kit.training_runs import trained

CLIENTS = one_provider_each(4, 5)


def settings(*changes: str) -> Settings:
    # Everybody takes part in every round, unless a test says otherwise.
    loaded = load_settings("centralized-dp", ["sampling.provider_rate=1", *changes])
    assert isinstance(loaded, Settings)
    return loaded


def total(loaded: Settings, updates: torch.Tensor) -> torch.Tensor:
    """The noised sum of one round over the data of all clients."""
    alone = loaded.plan(CLIENTS).clients
    start = torch.zeros(updates.shape[1])
    only = server(loaded.plan(CLIENTS).method, alone, FixedUpdates(updates), start).round(1, start)
    assert only.clients == [0]
    return only.aggregate.total


def test_one_party_has_the_data_of_all_clients() -> None:
    (alone,) = settings().plan(CLIENTS).clients
    assert alone == Client(0, {f"p{number}": [number] for number in range(20)})


def test_shares_of_the_noise_are_rejected_as_there_is_one_party() -> None:
    with pytest.raises(ProblemError, match="one party has all the data; use placement server"):
        settings("placement=client_share", "secure_aggregation={}")


def test_the_noise_is_drawn_once_on_the_sum_over_all_providers() -> None:
    loaded = settings("target_epsilon=null", "noise_multiplier=2", "clip_norm=0.25")
    assert has_std(total(loaded, torch.zeros(20, SIZE)), 2 * 0.25)
    assert not has_std(total(loaded, torch.zeros(20, SIZE)), 2.6 * 0.25)


def test_each_provider_is_clipped_by_itself_and_the_sum_divided_by_their_expected_number() -> None:
    loaded = settings("target_epsilon=null", "noise_multiplier=1.0e-9", "clip_norm=0.25")
    noised = total(loaded, 100 * torch.eye(20))
    torch.testing.assert_close(noised, torch.full((20,), 0.25), rtol=2.0**-10, atol=0)
    built = settings("sampling.provider_rate=0.25").plan(loaded.plan(CLIENTS).clients).method
    assert isinstance(built, ProviderDP)
    assert built.divisor == 20 * 0.25


def test_providers_flip_coins_and_a_round_costs_what_it_does_in_a_federation_that_answers_whole() -> None:
    loaded = settings("sampling.provider_rate=0.25")
    alone = loaded.plan(CLIENTS).guarantee
    (event,) = alone.released(4)
    assert isinstance(event, PoissonGaussian)
    assert event.sampling_rate == 0.25
    federated = load_settings("fl-provider-dp", ["sampling.provider_rate=0.25"])
    assert isinstance(federated, fl_provider_dp.Settings)
    assert federated.plan(CLIENTS).guarantee.released(4) == alone.released(4)
    assert not alone.seen_by_server


@pytest.mark.parametrize("changes", [[], ["placement=client_full", "sampling.provider_rate=0.5"]])
def test_the_evaluator_accepts_a_run_as_a_federation_of_one(
    changes: list[str], base: Path, data: Path, tmp_path: Path
) -> None:
    run = trained("centralized-dp", base, data, tmp_path / "run", changes)
    log = run.file(ArtifactKind.COMMUNICATION_LOG).read_text().splitlines()[1:]
    assert [line.split(",")[:3] for line in log] == [
        [number, *ends] for number in "12" for ends in (("-1", "0"), ("0", "-1"))
    ]
    line = run.record(max_rounds=2).run
    assert line.clients == 1
    assert isinstance(line.sampling, Poisson)
    assert line.normalizer == 7 * line.sampling.provider_rate  # the six providers and Ghost
    rules = TrackRules(
        reference="local", test_set="local", clients=1, privacy=PrivacyRules(epsilon=8, delta=1e-5)
    )
    inputs = StepInputs(run.files(), rules, reference=base)
    for step in (Step.VALIDATE, Step.COMMUNICATION):
        run_step(step, inputs, lambda done, total: None)
    result = run_step(Step.ACCOUNTING, inputs, lambda done, total: None).result
    assert isinstance(result, AccountingResult)
    assert result.within_budget
    assert [check for check in result.checks if check.status is CheckStatus.FLAGGED] == []
