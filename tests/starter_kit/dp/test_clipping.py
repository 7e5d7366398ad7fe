import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from starter_kit.dp.clipping import clip

values = st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=50)
clip_norms = st.floats(1e-3, 1e3)


@settings(deadline=None)
@given(values, clip_norms)
def test_the_norm_of_the_float32_result_never_exceeds_the_clip_norm(
    numbers: list[float], bound: float
) -> None:
    clipped = clip(torch.tensor(numbers, dtype=torch.float32), bound)
    assert clipped is not None
    assert float(torch.linalg.vector_norm(clipped, dtype=torch.float64)) <= bound


@settings(deadline=None)
@given(values, clip_norms)
def test_clipping_only_scales_and_only_down_to_the_bound(numbers: list[float], bound: float) -> None:
    update = torch.tensor(numbers, dtype=torch.float32)
    clipped = clip(update, bound)
    assert clipped is not None
    norm = float(torch.linalg.vector_norm(update, dtype=torch.float64))
    assert_close(clipped, update * min(1.0, bound / norm) if norm else update, rtol=1e-5, atol=1e-6 * bound)


def test_an_update_within_the_bound_is_left_as_it_is() -> None:
    update = torch.tensor([0.3, -0.4])
    assert clip(update, 0.6) is update


def test_a_large_update_uses_the_whole_bound() -> None:
    clipped = clip(torch.randn(1_000_000), 0.5)
    assert clipped is not None
    assert float(torch.linalg.vector_norm(clipped, dtype=torch.float64)) == pytest.approx(0.5, rel=1e-6)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_an_update_that_is_not_finite_contributes_nothing(bad: float) -> None:
    assert clip(torch.tensor([1.0, bad]), 1.0) is None


def test_a_norm_beyond_float32_is_still_clipped() -> None:
    clipped = clip(torch.full((100,), 3e38), 1.0)
    assert clipped is not None
    assert float(torch.linalg.vector_norm(clipped)) == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize(
    ("update", "bound"),
    [
        (torch.ones(2, 2), 1.0),
        (torch.ones(2, dtype=torch.float16), 1.0),
        (torch.ones(2), 0.0),
        (torch.ones(2), float("nan")),
    ],
)
def test_what_cannot_be_bounded_is_rejected(update: torch.Tensor, bound: float) -> None:
    with pytest.raises(ValueError, match=r"update|clip norm"):
        clip(update, bound)


def test_the_bound_holds_where_the_scale_is_below_the_normal_numbers_of_float32() -> None:
    clipped = clip(torch.full((1000,), 3e38), 1.0)
    assert clipped is not None
    assert float(torch.linalg.vector_norm(clipped, dtype=torch.float64)) <= 1.0
