"""What is said of claims: of margins and outcomes that are made up, and of what the papers print."""

from tests.studies.reproduction.ablations.claims import CLAIMS as ABLATION_CLAIMS
from tests.studies.reproduction.claims import CLAIMS
from tests.studies.reproduction.rows import Outcome
from tests.studies.reproduction.verdicts import by_row, spread, verdict


def outcome(row: str, seed: int) -> Outcome:
    return Outcome(
        row=row,
        seed=seed,
        anls=0.5,
        accuracy=0.5,
        bytes_total=1,
        epsilon=None,
        settings_sha256="0" * 64,
        made_with="m",
    )


def test_a_verdict_is_of_the_mean_and_of_every_seed() -> None:
    assert verdict([0.1, 0.2]) == "holds in every seed"
    assert verdict([-0.1, 0.2]) == "holds on average, in 1 of 2 seeds"
    assert verdict([-0.2, 0.1]) == "**doesn't hold**"
    assert verdict([0.0]) == "**doesn't hold**"


def test_the_papers_own_numbers_satisfy_every_claim_that_is_read_from_them() -> None:
    claims = [*CLAIMS, *ABLATION_CLAIMS]
    assert [claim.text for claim in claims if claim.margin(*claim.printed) <= 0] == []
    assert len({claim.text for claim in claims}) == len(claims)


def test_no_claim_compares_numbers_of_two_papers() -> None:
    claims = [*CLAIMS, *ABLATION_CLAIMS]
    papers = [{printed.table.partition(",")[0] for printed in claim.printed} for claim in claims]
    assert [claim.text for claim, found in zip(claims, papers, strict=True) if len(found) > 1] == []


def test_one_value_has_no_deviation() -> None:
    assert spread([0.5]) == "0.5000"
    assert spread([0.25, 0.75]) == "0.5000 ± 0.3536"


def test_the_outcomes_of_a_row_are_in_the_order_of_the_seeds() -> None:
    found = by_row([outcome("a", 2), outcome("b", 1), outcome("a", 1)])
    assert {row: [outcome.seed for outcome in outcomes] for row, outcomes in found.items()} == {
        "a": [1, 2],
        "b": [1],
    }
