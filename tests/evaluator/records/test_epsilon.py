"""From records to releases and results, under both sampling rules."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.accounting import pld, rdp
from evaluator.accounting.accountant import Accountant
from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.mechanisms.events import Event, Gaussian
from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.mechanisms.noise import Noise, Placement
from evaluator.mechanisms.sampling import FixedSize, Full, Poisson, RandomAllocation, Sampling
from evaluator.mechanisms.units import Adjacency, PrivacyUnit
from evaluator.messages.jobs import Check, CheckStatus, PrivacyRules
from evaluator.records.epsilon import CLAIM_TOLERANCE, MAX_DIFFERENT_ROUNDS, account, joint_epsilon, releases
from evaluator.records.lines import (
    Codec,
    EndLine,
    ResumeLine,
    RoundLine,
    RunLine,
    TrainableTensor,
    TrainingRecord,
    Tuning,
)
from evaluator.records.server_steps import SumStep
from tests.evaluator.accounting.compositions import (
    DELTA,
    allocation,
    fixed_size,
    gaussian,
    poisson,
    two_stage,
)

PRODUCT, TWO_STAGE = SamplingRule.PRODUCT, SamplingRule.TWO_STAGE
RULES = PrivacyRules(epsilon=8, delta=DELTA)
STAGED = Poisson(client_rate=0.2, provider_rate=0.125)
AT_SERVER = Noise(multiplier=1.0)


def drawn(sampling: Sampling, client_rate: float, provider_rate: float) -> Sampling:
    """The sampling of a round; coins may have rates of their own."""
    if isinstance(sampling, Poisson):
        return Poisson(client_rate=client_rate, provider_rate=provider_rate)
    return sampling


def record(
    *rounds: tuple[float, float, float],
    sampling: Sampling = STAGED,
    noise: Noise = AT_SERVER,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    claimed: float = 1e6,
    clients: int = 10,
) -> TrainingRecord:
    """A record of rounds of (client rate, provider rate, noise multiplier)."""
    zero: Any = "0" * 64
    run = RunLine(
        run_token="a-token-of-sixteen",
        kit_version="1",
        code_sha256=zero,
        track="fl-dp",
        method="fedavg-dp",
        adjacency=adjacency,
        delta=DELTA,
        clients=clients,
        sampling=sampling,
        clip_norm=0.5,
        noise=noise,
        normalizer=40.0,
        server=SumStep(learning_rate=1.0),
        codec=Codec(name="none", bits_per_parameter=32.0),
        rounds=len(rounds),
        base_sha256=zero,
        trainable=[TrainableTensor(name="x", shape=[1])],
        lora_scale=None,
        weights_root=zero,
        tuning=Tuning(private_runs=0),
        validation_on_private_data=False,
        claimed_epsilon=claimed,
    )
    lines = [
        RoundLine(
            round=number,
            clients=2,
            sampling=drawn(sampling, client_rate, provider_rate),
            clip_norm=0.5,
            noise_multiplier=multiplier,
            bytes_down=0,
            bytes_up=0,
            update_root=zero,
            weights_root=zero,
        )
        for number, (client_rate, provider_rate, multiplier) in enumerate(rounds, 1)
    ]
    end = EndLine(
        rounds=len(lines),
        bytes_down=0,
        bytes_up=0,
        checkpoint_sha256=zero,
        annex_body_sha256=zero,
        public_key="f" * 64,
    )
    return TrainingRecord(run=run, rounds=lines, end=end, own_challenge=zero)


def rejection(record: TrainingRecord, rules: PrivacyRules = RULES) -> Problem:
    with pytest.raises(ProblemError) as rejected:
        account(record, rules, [])
    return rejected.value.problem


@pytest.mark.parametrize(
    ("sampling", "rates", "by_product", "by_two_stage"),
    [
        (STAGED, (0.2, 0.125), poisson(0.025, 1.5, 2), two_stage(0.2, poisson(0.125, 1.5), 2)),
        (STAGED, (0.2, 1.0), poisson(0.2, 1.5, 2), two_stage(0.2, gaussian(1.5), 2)),
        (STAGED, (1.0, 0.125), poisson(0.125, 1.5, 2), poisson(0.125, 1.5, 2)),
        (Poisson(provider_rate=0.1), (1.0, 0.1), poisson(0.1, 1.5, 2), poisson(0.1, 1.5, 2)),
        (Poisson(provider_rate=1.0), (1.0, 1.0), gaussian(1.5, 2), gaussian(1.5, 2)),
        (Full(), (1.0, 1.0), gaussian(1.5, 2), gaussian(1.5, 2)),
        (
            FixedSize(clients_per_round=2, providers_per_client=1, fewest_providers=8),
            (0.2, 0.125),
            fixed_size(0.025, 1.5, 2),
            two_stage(0.2, fixed_size(0.125, 1.5), 2),
        ),
        (
            FixedSize(clients_per_round=10, providers_per_client=1, fewest_providers=8),
            (1.0, 0.125),
            fixed_size(0.125, 1.5, 2),
            fixed_size(0.125, 1.5, 2),
        ),
    ],
)
def test_each_sampling_has_its_release_under_each_rule(
    sampling: Sampling, rates: tuple[float, float], by_product: Event, by_two_stage: Event
) -> None:
    twice = record((*rates, 1.5), (*rates, 1.5), sampling=sampling)
    assert releases(twice, PRODUCT) == [by_product]
    assert releases(twice, TWO_STAGE) == [by_two_stage]


def test_random_allocation_is_accounted_by_the_cycles_that_began() -> None:
    round_values, allocated = (1.0, 0.25, 1.5), RandomAllocation(rounds_per_cycle=4)
    for rounds, cycles in ((1, 1), (4, 1), (5, 2), (8, 2)):
        found = record(*[round_values] * rounds, sampling=allocated)
        assert releases(found, TWO_STAGE) == releases(found, PRODUCT) == [allocation(4, 1.5, cycles)]
    # A cycle whose rounds differ in noise counts as one of each: more than the one of the least noise.
    quieter = record(*[round_values] * 5, (1.0, 0.25, 1.0), sampling=allocated)
    assert releases(quieter, TWO_STAGE) == [allocation(4, 1.5, 2), allocation(4, 1.0)]


def test_what_random_allocation_does_not_cover_is_rejected() -> None:
    allocated = RandomAllocation(rounds_per_cycle=4)
    replaced = record((1.0, 0.25, 1.5), sampling=allocated, adjacency=Adjacency.REPLACE)
    assert "under replacement" in str(rejection(replaced).found)
    seen = Noise(multiplier=1.5, placement=Placement.CLIENT_FULL)
    whole = record(*[(1.0, 0.25, 1.5)] * 3, sampling=allocated, noise=seen)
    assert releases(whole, TWO_STAGE)
    broken = replace(whole, resumes=[ResumeLine(round=2, begun=True, claimed_epsilon=8.0)])
    assert "seen twice" in str(rejection(broken).found)


def test_unit_and_adjacency_are_the_records() -> None:
    (event,) = releases(record((1.0, 1.0, 1.0), sampling=Full(), adjacency=Adjacency.REPLACE), TWO_STAGE)
    assert (event.unit, event.adjacency) == (PrivacyUnit.PROVIDER, Adjacency.REPLACE)


@pytest.mark.parametrize(
    ("sampling", "client_rate", "multiplier"),
    [
        (STAGED, 0.2, 1.0),
        (STAGED, 1.0, 10**0.5),
        (Poisson(provider_rate=0.125), 1.0, 10**0.5),
        (FixedSize(clients_per_round=4, providers_per_client=1, fewest_providers=8), 0.4, 2.0),
    ],
)
def test_noise_adds_up_over_the_clients_that_surely_draw_it(
    sampling: Sampling, client_rate: float, multiplier: float
) -> None:
    noise = Noise(multiplier=1.0, placement=Placement.CLIENT_FULL, secure_aggregation="simulated")
    (event,) = releases(record((client_rate, 0.125, 1.0), sampling=sampling, noise=noise), PRODUCT)
    assert not isinstance(event, Gaussian)
    assert event.model_dump()["effective_noise_multiplier"] == pytest.approx(multiplier)


def test_each_round_is_taken_as_it_was_recorded() -> None:
    quiet = (0.2, 0.125, 0.5)
    mixed = record(*[(0.2, 0.125, 5.0)] * 9, quiet)
    assert releases(mixed, PRODUCT) == [poisson(0.025, 5.0, 9), poisson(0.025, 0.5)]


def test_a_run_is_accounted_by_both_accountants_under_both_rules() -> None:
    result = account(record(*[(0.2, 1.0, 0.771484375)] * 10), RULES, [])
    found = {(row.sampling_rule, row.accountant): row for row in result.epsilons}
    assert {key: row.epsilon for key, row in found.items()} == {
        (PRODUCT, Accountant.PLD): pytest.approx(7.984, abs=0.005),
        (PRODUCT, Accountant.RDP): pytest.approx(9.205, abs=0.005),
        (TWO_STAGE, Accountant.PLD): pytest.approx(14.46, abs=0.005),
        (TWO_STAGE, Accountant.RDP): pytest.approx(16.282, abs=0.005),
    }
    assert found[PRODUCT, Accountant.PLD].within_budget
    assert found[PRODUCT, Accountant.PLD].margin == pytest.approx(0.016, abs=0.005)
    assert not found[PRODUCT, Accountant.RDP].within_budget


@pytest.mark.parametrize(
    ("rule", "accountant", "expected"),
    [
        (TWO_STAGE, Accountant.PLD, 14.46),
        (PRODUCT, Accountant.PLD, 7.984),
        (PRODUCT, Accountant.RDP, 9.205),
    ],
)
def test_the_tracks_rule_and_accountant_decide(
    rule: SamplingRule, accountant: Accountant, expected: float
) -> None:
    rules = PrivacyRules(epsilon=8, delta=DELTA, sampling_rule=rule, accountant=accountant)
    result = account(record(*[(0.2, 1.0, 0.771484375)] * 10), rules, [])
    assert result.epsilon == pytest.approx(expected, abs=0.005)
    assert result.within_budget == (expected < 8)
    assert result.accountant.startswith("PLD, evaluator" if accountant == "pld" else "RDP, dp-acc")


def test_the_result_carries_what_the_site_composes_and_shows() -> None:
    result = account(record(*[(0.2, 0.125, 1.0)] * 3), RULES, [])
    assert result.events == [two_stage(0.2, poisson(0.125, 1.0), 3)]
    assert (result.run_token, result.public_key) == ("a-token-of-sixteen", "f" * 64)
    assert (result.rounds, result.delta, result.epsilon_claimed) == (3, DELTA, 1e6)


@pytest.mark.parametrize(("noise", "status"), [(2.0, CheckStatus.PASSED), (0.3, CheckStatus.FLAGGED)])
def test_being_over_the_budget_is_flagged_and_no_error(noise: float, status: CheckStatus) -> None:
    other = Check(id="record.rounds", status=CheckStatus.PASSED)
    result = account(record((0.2, 0.5, noise)), RULES, [other])
    assert [(check.id, check.status) for check in result.checks] == [
        ("record.budget", status),
        ("record.rounds", CheckStatus.PASSED),
    ]
    assert result.within_budget == (status is CheckStatus.PASSED)


def test_a_missing_renyi_bound_is_shown_as_none() -> None:
    replaced = record((0.2, 0.125, 2.0), adjacency=Adjacency.REPLACE)
    rows = account(replaced, RULES, []).epsilons
    assert [(row.epsilon is None, row.within_budget, row.margin is None) for row in rows] == [
        (False, True, False),
        (True, False, True),
    ] * 2


def test_a_deciding_accountant_without_a_bound_rejects() -> None:
    replaced = record((0.2, 0.125, 2.0), adjacency=Adjacency.REPLACE)
    problem = rejection(replaced, PrivacyRules(epsilon=8, delta=DELTA, accountant=Accountant.RDP))
    assert (problem.code, problem.found) == (ErrorCode.ACCOUNTING_UNSUPPORTED, "none")


def test_where_rounding_hides_delta_the_renyi_bound_decides_and_is_named() -> None:
    result = account(record((0.2, 0.125, 4.0)), PrivacyRules(epsilon=8, delta=1e-14), [])
    by_pld, by_rdp = (row for row in result.epsilons if row.sampling_rule is SamplingRule.TWO_STAGE)
    assert result.epsilon == by_pld.epsilon == by_rdp.epsilon
    assert by_pld.decides
    assert result.accountant.startswith("RDP, dp-accounting")
    assert result.accountant.endswith("as PLD gives no ε at this δ")


SHARED = Noise(multiplier=1.0, placement=Placement.CLIENT_SHARE)


@pytest.mark.parametrize(
    ("noise", "unknown"), [(SHARED, (0.2, 0.125, 0.2)), (AT_SERVER, (1e-7, 1e-7, 1.0))], ids=["noise", "rate"]
)
def test_numbers_beyond_the_accountant_are_rejected(
    noise: Noise, unknown: tuple[float, float, float]
) -> None:
    problem = rejection(record((0.2, 0.125, 1.0), unknown, noise=noise))
    assert problem.code is ErrorCode.ACCOUNTING_UNSUPPORTED
    assert problem.where == "round 2"
    assert "0.1" in problem.found or "0.000000001" in problem.found


def test_more_clients_a_round_than_there_are_are_rejected() -> None:
    run = record(
        (1.0, 0.5, 1.0), sampling=FixedSize(clients_per_round=10, providers_per_client=1, fewest_providers=2)
    )
    eleven = FixedSize(clients_per_round=11, providers_per_client=1, fewest_providers=2)
    line = run.rounds[0].model_copy(update={"sampling": eleven})
    problem = rejection(replace(run, rounds=[line]))
    assert (problem.code, problem.where) == (ErrorCode.ACCOUNTING_UNSUPPORTED, "round 1")


def test_too_many_different_rounds_are_rejected() -> None:
    problem = rejection(record(*((0.2, 0.125, 1 + step / 1000) for step in range(MAX_DIFFERENT_ROUNDS + 1))))
    assert problem.code is ErrorCode.ACCOUNTING_UNSUPPORTED
    assert problem.found == str(MAX_DIFFERENT_ROUNDS + 1)


def test_a_claim_below_the_recomputed_epsilon_is_rejected() -> None:
    true = pld.epsilon([two_stage(0.2, poisson(0.125, 1.0))], DELTA)
    problem = rejection(record((0.2, 0.125, 1.0), claimed=true - 2 * CLAIM_TOLERANCE))
    assert (problem.code, problem.where) == (ErrorCode.RECORD_CLAIM, "line 1, claimed_epsilon")


@pytest.mark.parametrize("difference", [-CLAIM_TOLERANCE / 2, 0.0, 5.0])
def test_a_claim_of_at_least_the_recomputed_epsilon_is_taken(difference: float) -> None:
    true = pld.epsilon([two_stage(0.2, poisson(0.125, 1.0))], DELTA)
    assert account(record((0.2, 0.125, 1.0), claimed=true + difference), RULES, []).epsilon == true


def test_a_run_of_no_rounds_has_epsilon_zero() -> None:
    result = account(record(claimed=0.0), RULES, [])
    assert [row.epsilon for row in result.epsilons] == [0, 0, 0, 0]
    assert result.events == []
    assert result.within_budget


def test_what_a_team_releases_adds_up() -> None:
    noises = (0.771484375, 1.13647460937, 2.8515625)
    runs = [releases(record(*[(0.2, 1.0, noise)] * 10), PRODUCT) for noise in noises]
    assert joint_epsilon([event for run in runs for event in run], DELTA) == pytest.approx(8.721, abs=0.005)


@settings(max_examples=20, deadline=None)
@given(st.floats(0.05, 1), st.floats(0.05, 1), st.floats(0.5, 4), st.integers(1, 20))
def test_two_stages_never_cost_less_than_the_product_by_either_accountant(
    client_rate: float, provider_rate: float, noise: float, rounds: int
) -> None:
    run = record(*[(client_rate, provider_rate, noise)] * rounds)
    for accountant in (pld, rdp):
        product, staged = (accountant.epsilon(releases(run, rule), DELTA) for rule in (PRODUCT, TWO_STAGE))
        assert staged >= product * (1 - 1e-4) - 1e-6


@pytest.mark.parametrize(
    ("placement", "secure", "seen"),
    [
        ("server", "none", 3),
        ("client_share", "simulated", 5),
        ("client_full", "simulated", 5),
        ("client_full", "none", 5),
    ],
)
def test_an_interrupted_round_is_accounted_where_the_server_is_not_trusted(
    placement: str, secure: str, seen: int
) -> None:
    values = {"multiplier": 1.5, "placement": placement, "secure_aggregation": secure}
    noise = Noise.model_validate(values)
    whole = record(*[(1.0, 1.0, 1.5)] * 3, sampling=Poisson(provider_rate=1.0), noise=noise)
    broken = replace(
        whole,
        resumes=[
            ResumeLine(round=number, begun=begun, claimed_epsilon=0.1)
            for number, begun in ((2, True), (2, False), (3, True))
        ],
    )
    for rule in SamplingRule:
        assert sum(event.rounds for event in releases(broken, rule)) == seen
        assert sum(event.rounds for event in releases(whole, rule)) == 3
    assert "at least" in rejection(broken, PrivacyRules(epsilon=20, delta=DELTA)).expected
    claimed = replace(whole, resumes=[ResumeLine(round=2, begun=True, claimed_epsilon=50.0)])
    assert account(claimed, RULES, []).epsilon_claimed == 50.0
