"""Which row docs/fewest-bytes.md names as the one with the fewest bytes."""

from collections.abc import Mapping, Sequence

from tests.studies.reproduction.fewest.page import fewest_that_reach, reaching
from tests.studies.reproduction.fewest.rows import CANDIDATES, LADDER
from tests.studies.reproduction.rows import Outcome

THRESHOLDS = {1: 0.80, 2: 0.85}
FIRST, SECOND, *OTHERS = [row.name for row in (*LADDER, *CANDIDATES)]


def outcomes(name: str, size_bytes: int, *anls: float) -> Sequence[Outcome]:
    return [
        Outcome(
            row=name,
            seed=seed,
            anls=score,
            accuracy=0.5,
            bytes_total=size_bytes,
            epsilon=None,
            settings_sha256="0" * 64,
            made_with="kit 1, torch 2, m",
        )
        for seed, score in enumerate(anls, start=1)
    ]


def fewest(found: Mapping[str, Sequence[Outcome]]) -> str:
    rest = {name: outcomes(name, 9000, 0.9, 0.9) for name in OTHERS}
    return fewest_that_reach({**rest, **found}, THRESHOLDS).name


def test_a_row_counts_that_reaches_the_threshold_of_each_seed() -> None:
    whole, part = outcomes(FIRST, 2000, 0.80, 0.85), outcomes(SECOND, 500, 0.90, 0.84)
    assert [reaching(found, THRESHOLDS) for found in (whole, part)] == [2, 1]
    assert fewest({FIRST: whole, SECOND: part}) == FIRST


def test_of_those_the_one_with_the_fewest_bytes_is_named() -> None:
    whole, smaller = outcomes(FIRST, 2000, 0.95, 0.95), outcomes(SECOND, 500, 0.80, 0.85)
    assert fewest({FIRST: whole, SECOND: smaller}) == SECOND
