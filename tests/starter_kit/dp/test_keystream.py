import numpy as np
import pytest
from scipy import stats

from starter_kit.dp.keystream import Keystream


def test_uniforms_are_uniform() -> None:
    assert stats.kstest(Keystream().uniforms(200_000), "uniform").pvalue > 1e-6


def test_every_bit_of_a_word_is_a_fair_coin() -> None:
    bits = np.unpackbits(Keystream().words(50_000).view(np.uint8).reshape(-1, 8), axis=1)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 6 * 0.5 / np.sqrt(50_000)


def test_uniforms_are_never_zero_and_never_above_one() -> None:
    uniforms = Keystream().uniforms(100_000)
    assert uniforms.min() > 0
    assert uniforms.max() <= 1


def test_no_word_repeats_within_a_stream_or_between_two() -> None:
    first, second = Keystream(), Keystream()
    words = np.concatenate([first.words(100_000), first.words(100_000), second.words(100_000)])
    assert len(np.unique(words)) == len(words)


def test_a_keystream_takes_no_seed() -> None:
    with pytest.raises(TypeError):
        Keystream(42)  # type: ignore[call-arg]
