import numpy as np
import pytest
import torch
from scipy import stats

from evaluator.mechanisms.noise import Noise, Placement
from starter_kit.dp.gaussian_sum import GaussianSum

SIZE = 20_000


def has_std(noise: torch.Tensor, std: float) -> bool:
    statistic = float((noise.double() / std).square().sum())
    return bool(min(stats.chi2.cdf(statistic, len(noise)), stats.chi2.sf(statistic, len(noise))) > 1e-7)


@pytest.mark.parametrize(
    ("placement", "client", "server", "total"),
    [
        (Placement.SERVER, 0.0, 0.6, 0.6),
        (Placement.CLIENT_FULL, 0.6, 0.0, 0.6 * 3),
        (Placement.CLIENT_SHARE, 0.6 / 3, 0.0, 0.6),
    ],
)
def test_each_party_adds_its_part_of_the_noise_and_no_other(
    placement: Placement, client: float, server: float, total: float
) -> None:
    noise = GaussianSum(0.3, Noise(multiplier=2.0, placement=placement))
    nothing = torch.zeros(SIZE)
    messages = [noise.noised_by_client(nothing, clients=9) for _ in range(9)]
    for message in messages:
        assert has_std(message, client) if client else torch.equal(message, nothing)
    added = noise.noised_by_server(nothing)
    assert has_std(added, server) if server else torch.equal(added, nothing)
    whole = noise.noised_by_server(torch.stack(messages).sum(dim=0))
    assert has_std(whole, total)
    assert not has_std(whole, total * 1.05)
    assert noise.std_in_sum(9) == pytest.approx(total)


def test_what_is_noised_stays_as_it_was() -> None:
    vector = torch.ones(SIZE)
    noised = GaussianSum(1.0, Noise(multiplier=1.0)).noised_by_server(vector)
    assert torch.equal(vector, torch.ones(SIZE))
    assert np.isclose(noised.mean(), 1.0, atol=6 / np.sqrt(SIZE))


def test_two_mechanisms_never_share_their_noise() -> None:
    first, second = (
        GaussianSum(1.0, Noise(multiplier=1.0)).noised_by_server(torch.zeros(SIZE)) for _ in range(2)
    )
    assert abs(np.corrcoef(first, second)[0, 1]) < 6 / np.sqrt(SIZE)


def test_an_update_is_bounded_by_the_clip_norm() -> None:
    clipped = GaussianSum(0.25, Noise(multiplier=1.0)).clip(torch.full((100,), 5.0))
    assert clipped is not None
    assert float(clipped.norm()) == pytest.approx(0.25, rel=1e-5)
