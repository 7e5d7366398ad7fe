"""Keys are apart by purpose, round, clients and list of keys, and agree between two clients."""

import pytest

from starter_kit.secure_aggregation import ProtocolError
from starter_kit.secure_aggregation.keys import (
    KeySchedule,
    agree,
    fresh_secret,
    public_key_of,
    transcript_of,
)
from starter_kit.secure_aggregation.terms import Terms

SCHEDULE = KeySchedule(7, bytes(32))
ONE, OTHER = fresh_secret(), fresh_secret()


def test_both_clients_of_a_pair_derive_the_same_keys() -> None:
    assert SCHEDULE.pairwise_mask(ONE, public_key_of(OTHER), 1, 2) == SCHEDULE.pairwise_mask(
        OTHER, public_key_of(ONE), 2, 1
    )
    assert SCHEDULE.share_encryption(ONE, public_key_of(OTHER), 1, 2) == SCHEDULE.share_encryption(
        OTHER, public_key_of(ONE), 1, 2
    )


def test_no_two_purposes_directions_clients_rounds_or_lists_share_a_key() -> None:
    public = public_key_of(OTHER)
    next_round, other_list = KeySchedule(8, bytes(32)), KeySchedule(7, b"\x01" * 32)
    keys = [
        SCHEDULE.pairwise_mask(ONE, public, 1, 2),
        SCHEDULE.pairwise_mask(ONE, public, 1, 3),
        SCHEDULE.share_encryption(ONE, public, 1, 2),
        SCHEDULE.share_encryption(ONE, public, 2, 1),
        SCHEDULE.self_mask(agree(ONE, public), 1),
        SCHEDULE.self_mask(agree(ONE, public), 2),
        next_round.pairwise_mask(ONE, public, 1, 2),
        other_list.pairwise_mask(ONE, public, 1, 2),
    ]
    assert len(set(keys)) == len(keys)
    assert {len(key) for key in keys} == {32}


def test_another_list_threshold_or_round_is_another_transcript() -> None:
    terms = Terms(7, (0, 1, 2), 2)
    transcripts = {
        transcript_of(b"list", terms),
        transcript_of(b"lisp", terms),
        transcript_of(b"list", Terms(7, (0, 1, 2), 3)),
        transcript_of(b"list", Terms(8, (0, 1, 2), 2)),
    }
    assert len(transcripts) == 4


@pytest.mark.parametrize("point", [bytes(32), b"\x01" + bytes(31)], ids=["zero", "one"])
def test_a_public_key_that_gives_everybody_the_same_secret_is_rejected(point: bytes) -> None:
    with pytest.raises(ProtocolError, match="gives no secret"):
        agree(ONE, point)
