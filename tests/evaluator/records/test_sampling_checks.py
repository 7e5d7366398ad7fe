"""Checks of sampling: numbers of clients and providers, as the declared sampling makes them and otherwise."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from evaluator.mechanisms.sampling import FixedSize, Poisson, RandomAllocation
from evaluator.messages.jobs import CheckStatus, TrackRules
from evaluator.records.annex import Annex
from evaluator.records.case import Case
from evaluator.records.lines import TrainingRecord
from evaluator.records.reading import read_record
from evaluator.records.sampling_checks import clients
from tests.evaluator.records.checked import PRIVACY, checks
from tests.evaluator.records.factories import make_record

FIXED = FixedSize(clients_per_round=2, providers_per_client=5, fewest_providers=20)


def test_a_fixed_number_that_varies_or_is_too_large_is_rejected(tmp_path: Path) -> None:
    def counts(*numbers: int) -> Callable[[Annex], Annex]:
        return lambda annex: replace(
            annex,
            sampled=[
                dict.fromkeys(counts, number) for counts, number in zip(annex.sampled, numbers, strict=True)
            ],
        )

    for numbers, where in (((5, 4), "annex, client 0"), ((6, 6), "annex, client 0")):
        made = make_record(
            tmp_path / str(numbers),
            sampling=FixedSize(clients_per_round=2, providers_per_client=5, fewest_providers=20),
            change_annex=counts(*numbers),
        )
        found = checks(made)
        assert (found["record.providers"].status, found["record.providers"].where) == (
            CheckStatus.FAILED,
            where,
        )


def clients_checked(record: TrainingRecord) -> CheckStatus:
    rules = TrackRules(reference="tiny", test_set="secret", clients=10, privacy=PRIVACY)
    return clients.make(Case(record, rules, {})).status


def test_clients_that_no_coins_would_choose_are_flagged(tmp_path: Path) -> None:
    made = make_record(tmp_path, clients=10, rounds=30, sampling=FIXED)
    record = read_record(made.record, max_rounds=30)
    coins = Poisson(client_rate=0.2, provider_rate=0.25)
    assert clients_checked(record) is CheckStatus.PASSED
    called_coins = replace(
        record, rounds=[line.model_copy(update={"sampling": coins}) for line in record.rounds]
    )
    assert clients_checked(called_coins) is CheckStatus.FLAGGED


def test_clients_that_coins_cannot_have_chosen_are_rejected(tmp_path: Path) -> None:
    made = make_record(tmp_path, clients=10, rounds=30, sampling=FIXED)
    record = read_record(made.record, max_rounds=30)
    coins = Poisson(client_rate=1e-6, provider_rate=0.25)
    rare = replace(
        record,
        rounds=[line.model_copy(update={"sampling": coins}) for line in record.rounds],
    )
    assert clients_checked(rare) is CheckStatus.FAILED


def test_a_fixed_number_is_the_same_at_all_clients(tmp_path: Path) -> None:
    made = make_record(
        tmp_path,
        sampling=FixedSize(clients_per_round=2, providers_per_client=5, fewest_providers=20),
        change_annex=lambda annex: replace(annex, sampled=[{0: 5, 1: 4}] * len(annex.sampled)),
    )
    found = checks(made)["record.providers"]
    assert (found.status, found.where) == (CheckStatus.FAILED, "annex, client 1")


def test_a_client_with_fewer_providers_than_the_rate_counts_on_is_rejected(tmp_path: Path) -> None:
    fixed = FixedSize(clients_per_round=2, providers_per_client=5, fewest_providers=21)
    found = checks(make_record(tmp_path, sampling=fixed))["record.providers"]
    assert (found.status, found.where) == (CheckStatus.FAILED, "annex, client 0")


class TestNumbersThatTheOrganizersKnow:
    """`make_record` claims 20 providers a client."""

    def test_the_track_s_own_pass(self, tmp_path: Path) -> None:
        assert (
            checks(make_record(tmp_path), providers=[20, 20])["record.providers"].status is CheckStatus.PASSED
        )

    def test_more_are_rejected(self, tmp_path: Path) -> None:
        # Ten times the providers, each sampled at a tenth of the rate, is the same sample at a fraction of the ε.
        found = checks(make_record(tmp_path), providers=[20, 2])["record.providers"]
        assert (found.status, found.where) == (CheckStatus.FAILED, "annex, client 1")
        assert "20" not in f"{found.expected}{found.found}"

    def test_fewer_are_flagged(self, tmp_path: Path) -> None:
        found = checks(make_record(tmp_path), providers=[21, 20])["record.providers"]
        assert (found.status, found.where) == (CheckStatus.FLAGGED, "annex, client 0")


def test_random_allocation_takes_every_provider_once_in_a_cycle(tmp_path: Path) -> None:
    def moved(*changes: int) -> Callable[[Annex], Annex]:
        return lambda annex: replace(
            annex,
            sampled=[
                {0: sampled[0] + change, 1: sampled[1]}
                for sampled, change in zip(annex.sampled, changes, strict=True)
            ],
        )

    allocated = RandomAllocation(rounds_per_cycle=3)
    for changes, status in (
        ((0,) * 8, CheckStatus.PASSED),
        ((0, 0, 0, 1, 0, 0, 0, 0), CheckStatus.FAILED),  # a provider more in the second cycle
        ((0, 0, 0, 0, -1, 0, 0, 0), CheckStatus.FAILED),  # a provider fewer
        ((0, 0, 0, 0, 0, 0, 0, 13), CheckStatus.FAILED),  # more than there are, in the unfinished last cycle
    ):
        made = make_record(
            tmp_path / "-".join(map(str, changes)),
            rounds=8,
            sampling=allocated,
            change_annex=moved(*changes),
        )
        assert checks(made)["record.providers"].status is status


def test_an_allocation_of_equal_parts_is_flagged(tmp_path: Path) -> None:
    def equal(annex: Annex) -> Annex:
        return replace(annex, sampled=[dict.fromkeys(sampled, 5) for sampled in annex.sampled])

    made = make_record(tmp_path, rounds=16, sampling=RandomAllocation(rounds_per_cycle=4), change_annex=equal)
    assert checks(made)["record.providers"].status is CheckStatus.FLAGGED
