"""Messages have the sizes that the documentation says, and whatever isn't exactly one is rejected."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starter_kit.secure_aggregation import ProtocolError
from starter_kit.secure_aggregation.keys import PublicKeys
from starter_kit.secure_aggregation.messages import (
    HEADER,
    Envelope,
    MessageKind,
    envelope_of,
    read_advertisement,
    read_key_list,
    read_masked_vector,
    read_unmask_answer,
    write_advertisement,
    write_key_list,
)
from tests.starter_kit.secure_aggregation.whole_round import ROUND, Round, random_vectors

KEYS = {id_: PublicKeys(bytes([id_]) * 32, bytes([id_ + 100]) * 32) for id_ in (1, 4, 9)}
KEY_LIST = write_key_list(ROUND, KEYS)


def test_sizes_of_all_messages_are_as_documented() -> None:
    invited, advertised, shared, size = 6, 5, 5, 11
    played = Round(random_vectors(invited, size), 4)
    first, second, *_ = played.clients
    played.lose(first)
    played.server.receive(advertisement := played.clients[second].advertise())
    for client in list(played.clients)[1:]:
        played.server.receive(played.clients[client].advertise())
    key_list = played.server.key_list()
    messages = {id_: client.share(key_list) for id_, client in played.clients.items()}
    for message in messages.values():
        played.server.receive(message)
    routed = played.server.routed_shares()
    played.lose(list(played.clients)[-1])
    request = played.mask(routed)
    answer = played.clients[second].unmask(request)
    assert len(advertisement) == 24 + 64
    assert len(key_list) == 24 + 68 * advertised
    assert len(messages[second]) == 24 + 98 * (advertised - 1)
    assert len(routed[second]) == 24 + 98 * (shared - 1)
    assert len(played.masked[second]) == 24 + 4 * size
    assert len(request) == 24 + 4 * (shared - 1)
    assert len(answer) == 24 + 38 * shared


def test_a_list_of_keys_by_hand() -> None:
    message = write_key_list(7, {3: PublicKeys(b"m" * 32, b"e" * 32)})
    header = b"PFSA" + b"\x01\x00" + b"\x02\x00" + b"\x07" + bytes(7) + b"\xff" * 4 + b"\x01\x00\x00\x00"
    assert message == header + b"\x03\x00\x00\x00" + b"m" * 32 + b"e" * 32
    assert read_key_list(message, 7, 1) == {3: PublicKeys(b"m" * 32, b"e" * 32)}


@pytest.mark.parametrize("change", [KEY_LIST[:-1], KEY_LIST + b"\0", KEY_LIST[:10], b"", KEY_LIST[:24]])
def test_a_message_cut_off_or_with_more_behind_it_is_rejected(change: bytes) -> None:
    with pytest.raises(ProtocolError, match="bytes"):
        read_key_list(change, ROUND, 3)


def test_more_entries_than_there_can_be_are_rejected_before_they_are_read() -> None:
    with pytest.raises(ProtocolError, match="KEY_LIST with 3 entries, not 1 to 2"):
        read_key_list(KEY_LIST, ROUND, 2)
    claims_much = HEADER.pack(b"PFSA", 1, MessageKind.MASKED_VECTOR, ROUND, 0, 2**32 - 1)
    with pytest.raises(ProtocolError, match="4294967295 entries, not 10 to 10"):
        read_masked_vector(claims_much, Envelope(MessageKind.MASKED_VECTOR, ROUND, 0), 10)


def test_another_round_kind_or_client_is_rejected() -> None:
    with pytest.raises(ProtocolError, match=f"round is {ROUND}, where 8 was expected"):
        read_key_list(KEY_LIST, 8, 3)
    advertisement = write_advertisement(ROUND, 1, KEYS[1])
    with pytest.raises(ProtocolError, match="kind is ADVERTISEMENT, where KEY_LIST was expected"):
        read_key_list(advertisement, ROUND, 3)
    with pytest.raises(ProtocolError, match="client is 1, where 2 was expected"):
        read_advertisement(advertisement, Envelope(MessageKind.ADVERTISEMENT, ROUND, 2))


@pytest.mark.parametrize(
    ("offset", "value", "complaint"),
    [(0, b"X", "not a message"), (4, b"\x02", "not a message"), (6, b"\x08", "of kind 8")],
    ids=["mark", "version", "kind"],
)
def test_another_protocol_version_or_an_unknown_kind_is_rejected(
    offset: int, value: bytes, complaint: str
) -> None:
    with pytest.raises(ProtocolError, match=complaint):
        envelope_of(KEY_LIST[:offset] + value + KEY_LIST[offset + 1 :])


@pytest.mark.parametrize("order", [(0, 0, 2), (1, 0, 2)], ids=["twice", "out of order"])
def test_clients_out_of_order_or_twice_are_rejected(order: tuple[int, ...]) -> None:
    entries = [KEY_LIST[24 + 68 * n : 24 + 68 * (n + 1)] for n in range(3)]
    with pytest.raises(ProtocolError, match="ascending order"):
        read_key_list(KEY_LIST[:24] + b"".join(entries[n] for n in order), ROUND, 3)


def test_a_share_of_a_secret_that_does_not_exist_is_rejected() -> None:
    header = HEADER.pack(b"PFSA", 1, MessageKind.UNMASK_ANSWER, ROUND, 1, 1)
    with pytest.raises(ProtocolError, match="no secret has the number 3"):
        read_unmask_answer(
            header + bytes(4) + b"\x03" + bytes(33), Envelope(MessageKind.UNMASK_ANSWER, ROUND, 1), 1
        )


def test_a_masked_vector_is_read_without_a_copy() -> None:
    message = HEADER.pack(b"PFSA", 1, MessageKind.MASKED_VECTOR, ROUND, 1, 2) + b"\x01\0\0\0" + b"\0\0\0\x80"
    vector = read_masked_vector(message, Envelope(MessageKind.MASKED_VECTOR, ROUND, 1), 2)
    assert vector.tolist() == [1, 2**31]
    assert np.shares_memory(vector, np.frombuffer(message, np.uint8))


@given(st.binary(max_size=300) | st.binary(max_size=300).map(lambda tail: KEY_LIST[:24] + tail))
def test_arbitrary_bytes_are_rejected_with_a_protocol_error_or_read_as_what_they_are(data: bytes) -> None:
    try:
        keys = read_key_list(data, ROUND, 3)
    except ProtocolError:
        return
    assert write_key_list(ROUND, keys) == data
