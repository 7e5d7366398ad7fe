"""Random allocation: every member once in a cycle, uniformly, independently, and never drawn twice."""

import numpy as np
import pytest
import torch
from scipy import stats

from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.sampling import OncePerCycle
from starter_kit.dp.allocation import ALLOCATION, allocated
from starter_kit.dp.keystream import Keystream
from starter_kit.dp.sampling import draw

NAMES = [f"p{n}" for n in range(60)]
LAW = OncePerCycle(len(NAMES), 5)


def cycles(count: int) -> np.ndarray:
    """The place in its cycle at which each member took part (cycles, members), each exactly once."""
    keystream, places = Keystream(), np.full((count, len(NAMES)), -1)
    state: dict[str, torch.Tensor] = {}
    for number in range(1, count * LAW.rounds + 1):
        cycle, place = LAW.place(number)
        for name in draw(LAW, NAMES, keystream, round_number=number, state=state):
            assert places[cycle, NAMES.index(name)] == -1
            places[cycle, NAMES.index(name)] = place
    assert (places >= 0).all()
    return places


def test_every_member_takes_part_once_in_a_cycle_in_a_uniform_round_of_its_own() -> None:
    places = cycles(400)
    # Each of these tests fails by chance once in 10⁹ runs.
    counts = np.bincount(places.ravel(), minlength=LAW.rounds)
    assert stats.chisquare(counts).pvalue > 1e-9
    sizes = np.array([np.bincount(row, minlength=LAW.rounds) for row in places])
    spread = ((sizes - 12) ** 2 / 12).sum()
    assert 1e-9 < stats.chi2.sf(spread, 400 * 4) < 1 - 1e-9
    again = (places[1:] == places[:-1]).sum()
    assert stats.binomtest(int(again), 399 * 60, 0.2).pvalue > 1e-9
    together = (places[:, ::2] == places[:, 1::2]).sum()
    assert stats.binomtest(int(together), 400 * 30, 0.2).pvalue > 1e-9


def test_the_members_of_a_round_are_in_the_populations_order() -> None:
    sample = allocated(LAW, NAMES, 1, Keystream(), {})
    assert sample == sorted(sample, key=NAMES.index)


def test_what_was_drawn_stays_when_a_round_is_repeated_from_the_saved_state() -> None:
    state: dict[str, torch.Tensor] = {}
    allocated(LAW, NAMES, 1, Keystream(), state)
    first = allocated(LAW, NAMES, 3, Keystream(), dict(state))
    assert allocated(LAW, NAMES, 3, Keystream(), dict(state)) == first


@pytest.mark.parametrize("state", [{}, {ALLOCATION: torch.zeros(3, dtype=torch.int64)}])
def test_nothing_is_drawn_again_in_the_middle_of_a_cycle(state: dict[str, torch.Tensor]) -> None:
    with pytest.raises(ProblemError) as rejected:
        allocated(LAW, NAMES, 2, Keystream(), state)
    assert rejected.value.problem.code is ErrorCode.CLIENTS_LOST


def test_a_draw_needs_the_clients_state() -> None:
    with pytest.raises(ValueError, match="needs the client's state"):
        draw(LAW, NAMES, Keystream())
