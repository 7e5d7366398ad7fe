"""Tests of the number of threads that compute with a model."""

from collections.abc import Iterator

import pytest
import torch

from evaluator.docvqa.threads import FEW_PARAMETERS, set_threads_for


@pytest.fixture(autouse=True)
def three_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("OMP_NUM_THREADS")
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    set_threads_for(FEW_PARAMETERS)
    torch.set_num_threads(before)


def test_a_small_model_is_computed_in_one_thread() -> None:
    set_threads_for(FEW_PARAMETERS - 1)
    assert torch.get_num_threads() == 1


def test_a_large_model_keeps_all() -> None:
    set_threads_for(FEW_PARAMETERS)
    assert torch.get_num_threads() == 3


def test_a_large_model_after_small_ones_gets_all_again() -> None:
    set_threads_for(1)
    set_threads_for(1)
    set_threads_for(FEW_PARAMETERS)
    assert torch.get_num_threads() == 3


def test_the_user_s_number_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    set_threads_for(1)
    assert torch.get_num_threads() == 3
