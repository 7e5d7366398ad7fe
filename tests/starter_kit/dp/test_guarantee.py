from collections.abc import Callable

import pytest

from evaluator.accounting import pld
from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.events import Event, Gaussian
from evaluator.mechanisms.units import PrivacyUnit
from starter_kit.dp.guarantee import Guarantee, rounds_within

DELTA = 1e-5


def gaussian(noise_multiplier: float) -> Callable[[int], list[Event]]:
    return lambda rounds: [Gaussian(effective_noise_multiplier=noise_multiplier, rounds=rounds)]


def test_spending_grows_by_round_from_nothing() -> None:
    guarantee = Guarantee(PrivacyUnit.PROVIDER, DELTA, gaussian(4.0))
    spent = [guarantee.epsilon(rounds) for rounds in range(6)]
    assert spent[0] == 0
    assert spent == sorted(spent)
    assert spent[5] == pytest.approx(pld.epsilon([Gaussian(effective_noise_multiplier=4.0, rounds=5)], DELTA))


def test_without_a_budget_no_round_is_rejected() -> None:
    Guarantee(PrivacyUnit.PROVIDER, DELTA, gaussian(0.2)).check_before(1000)


def test_a_round_that_would_exceed_the_budget_is_rejected_before_it_begins() -> None:
    exact = Guarantee(PrivacyUnit.PROVIDER, DELTA, gaussian(4.0)).epsilon(3)
    guarantee = Guarantee(PrivacyUnit.PROVIDER, DELTA, gaussian(4.0), budget=exact)
    guarantee.check_before(3)
    with pytest.raises(ProblemError) as caught:
        guarantee.check_before(4)
    assert caught.value.problem.code is ErrorCode.PRIVACY_BUDGET
    assert caught.value.problem.where == "round 4"


@pytest.mark.parametrize("at_most", [1, 2, 7, 1000])
def test_as_many_rounds_as_fit_are_found(at_most: int) -> None:
    found = rounds_within(4.0, DELTA, gaussian(4.0), at_most)
    linear = 0
    while linear < at_most and pld.epsilon(gaussian(4.0)(linear + 1), DELTA) <= 4.0:
        linear += 1
    assert found == linear


def test_a_budget_without_room_for_one_round_is_rejected() -> None:
    with pytest.raises(ProblemError) as caught:
        rounds_within(0.1, DELTA, gaussian(4.0), 10)
    assert caught.value.problem.code is ErrorCode.PRIVACY_BUDGET


def test_noise_that_bounds_nothing_is_a_problem_of_the_settings() -> None:
    hopeless = Guarantee(PrivacyUnit.PROVIDER, 1e-30, gaussian(0.02))
    with pytest.raises(ProblemError) as caught:
        hopeless.epsilon(5)
    assert caught.value.problem.code is ErrorCode.CONFIGURATION
