import numpy as np
import pytest
from scipy import stats

from starter_kit.dp.keystream import Keystream, drawing_from


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


def test_a_key_gives_the_same_draws_again_and_another_key_others() -> None:
    def drawn(key: bytes) -> list[int]:
        with drawing_from(key):
            return [*Keystream().words(3), *Keystream().words(2)]

    assert drawn(bytes(32)) == drawn(bytes(32))
    assert len({*drawn(bytes(32)), *drawn(bytes(31) + b"\1")}) == 10


def test_a_block_inside_another_has_its_own_draws_and_the_outer_one_goes_on() -> None:
    keystream, outer, inner = Keystream(), bytes(32), bytes(31) + b"\1"
    with drawing_from(outer):
        whole = keystream.words(4).tolist()
    with drawing_from(outer):
        first = keystream.words(2).tolist()
        with drawing_from(inner):
            assert keystream.words(2).tolist() not in (whole[:2], whole[2:])
        with drawing_from(None):
            assert first + keystream.words(2).tolist() == whole


def test_outside_of_a_block_nobody_can_draw_the_same_numbers() -> None:
    keystream = Keystream()
    with drawing_from(bytes(32)):
        inside = keystream.words(2).tolist()
    assert keystream.words(2).tolist() != inside
    with drawing_from(None):
        assert keystream.words(2).tolist() != inside


def test_the_draws_of_a_key_are_aes_256_in_counter_mode_from_zero() -> None:
    # NIST FIPS 197's cipher of a block of zeros under a key of zeros, as little-endian words.
    with drawing_from(bytes(32)):
        assert Keystream().words(2).tobytes().hex() == "dc95c078a2408989ad48a21492842087"


def test_a_run_that_isnt_replayable_draws_under_a_key_of_the_os(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("starter_kit.dp.keystream.os.urandom", bytes)
    with drawing_from(None):
        assert Keystream().words(2).tobytes().hex() == "dc95c078a2408989ad48a21492842087"
