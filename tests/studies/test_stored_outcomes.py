"""The outcomes in docs/ are those of the rows, settings and mutants as they are."""

from collections.abc import Sequence

import pytest

from evaluator.mechanisms.noise import Placement
from tests.studies.catalog import ablations, conformance, forging, genuine, memorization, reproduction
from tests.studies.forging.forgeries import FORGERIES
from tests.studies.genuine_runs import MORE, is_allowed
from tests.studies.memorization import experiment as memorization_experiment
from tests.studies.mutants.catalog import CATALOG, LIMITS
from tests.studies.reproduction.ablations.rows import ROWS as ABLATION_ROWS
from tests.studies.reproduction.experiment import Results, key_of
from tests.studies.reproduction.rows import ROWS, Row
from tests.studies.study import Study


@pytest.mark.parametrize(("study", "rows"), [(reproduction(), ROWS), (ablations(), ABLATION_ROWS)])
def test_a_row_was_trained_with_three_seeds_or_more_and_its_settings_as_they_are_now_or_not_at_all(
    study: Study[Results], rows: Sequence[Row]
) -> None:
    found = sorted(key_of(outcome) for outcome in study.read().outcomes)
    seeds = {seed for _, seed, _ in found}
    assert len(seeds) >= 3
    run = {name for name, _, _ in found}
    listed = sorted(
        (row.name, seed, row.settings_sha256) for row in rows for seed in seeds if row.name in run
    )
    assert found == listed, "run `make reproduce`"


def test_what_was_memorized_was_measured_with_the_settings_as_they_are_or_not_at_all() -> None:
    found = {(one.row, one.seed, one.settings_sha256) for one in memorization().read().outcomes}
    rows, seeds = memorization_experiment.ROWS, memorization_experiment.SEEDS
    assert found <= {(row.name, seed, row.settings_sha256) for seed in seeds for row in rows}


def test_the_counts_are_of_the_mutants_as_they_are_and_all_but_the_limits_were_found() -> None:
    found = conformance().read().mutants
    assert {(each.mutant, each.fault) for each in found} == {(m.name, m.fault) for m in CATALOG}
    assert {each.mutant for each in found if not each.caught_by} <= LIMITS


def test_no_genuine_run_was_flagged_in_any_count() -> None:
    tallies = genuine().read()
    assert {tally.name for tally in tallies} >= set(MORE)
    assert [tally.name for tally in tallies if tally.alarms] == []


def test_every_forgery_was_judged_and_only_those_have_a_rank_that_must_be_replayed() -> None:
    found = forging().read()
    assert [one.name for one in found.forged] == [forgery.name for forgery in FORGERIES]
    assert all(
        sum(one.verdicts.values()) == forgery.challenges
        for one, forgery in zip(found.forged, FORGERIES, strict=True)
    )
    ranked = [one for one in found.forged if one.verdicts.keys() - {"rejected", "no rank"}]
    assert {one.name for one in ranked} == {forgery.name for forgery in FORGERIES if forgery.passes}
    # Their last round is false, and is always replayed.
    assert all(one.is_replayable for one in ranked)


def test_only_placements_and_codecs_are_counted_that_a_config_allows() -> None:
    assert is_allowed("fl-provider-dp", Placement.CLIENT_FULL, "nf4")
    assert is_allowed("dp-lora", Placement.CLIENT_SHARE, "float32")
    assert not is_allowed("fl-provider-dp", Placement.SERVER, "nf4")
    assert not is_allowed("centralized-dp", Placement.CLIENT_SHARE, "float32")
