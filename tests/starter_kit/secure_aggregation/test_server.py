"""What the server rejects."""

import pytest

from starter_kit.secure_aggregation import ProtocolError
from starter_kit.secure_aggregation.client import SecureClient
from starter_kit.secure_aggregation.messages import (
    Envelope,
    MessageKind,
    Revealed,
    Secret,
    read_sealed,
    read_unmask_answer,
    write_masked_vector,
    write_sealed,
    write_unmask_answer,
)
from starter_kit.secure_aggregation.server import SecureServer
from tests.starter_kit.secure_aggregation.whole_round import ROUND, Round, plain_sum, random_vectors, terms_of

IDS = (0, 3, 6, 9)


def a_round() -> Round:
    """Four clients with the ids of `IDS`, of which three are enough."""
    return Round(random_vectors(4, 5), 3)


def with_answers(played: Round, request: bytes, number: int) -> dict[int, dict[int, Revealed]]:
    """Take the answers of the first `number` clients; return the others' answers, not yet taken."""
    others = {}
    for n, (id_, client) in enumerate(played.clients.items()):
        answer = client.unmask(request)
        if n < number:
            played.server.receive(answer)
        else:
            others[id_] = read_unmask_answer(answer, Envelope(MessageKind.UNMASK_ANSWER, ROUND, id_), 4)
    return others


def test_a_message_that_came_already_is_rejected_and_counts_once() -> None:
    played = a_round()
    routed = played.until_shared()
    messages = [client.mask(routed[id_], played.vectors[id_]) for id_, client in played.clients.items()]
    for message in messages:
        played.server.receive(message)
        with pytest.raises(ProtocolError, match="has sent its MASKED_VECTOR already"):
            played.server.receive(message)
    assert (played.unmask(played.server.unmask_request()) == plain_sum(played.vectors)).all()


def test_messages_of_a_leg_that_ended_or_has_not_begun_are_rejected() -> None:
    played = a_round()
    late = played.clients[9].advertise()
    played.lose(9)
    key_list = played.advertise()
    with pytest.raises(ProtocolError, match="ADVERTISEMENT arrived while the server collects SHARES"):
        played.server.receive(late)
    early = bytes(write_masked_vector(ROUND, 0, played.vectors[0]))
    with pytest.raises(ProtocolError, match="MASKED_VECTOR arrived while the server collects SHARES"):
        played.server.receive(early)
    total = played.unmask(played.mask(played.share(key_list)))
    assert len(total) == 5
    with pytest.raises(ProtocolError, match="MASKED_VECTOR arrived while the server collects nothing"):
        played.server.receive(early)


def test_a_message_of_another_round_or_of_nobody_is_rejected() -> None:
    server = SecureServer(terms_of(IDS), 5)
    with pytest.raises(ProtocolError, match="a message of round 8 arrived in round 7"):
        server.receive(SecureClient(0, terms_of(IDS, number=8)).advertise())
    with pytest.raises(ProtocolError, match="client 1 is not expected to send ADVERTISEMENT"):
        server.receive(SecureClient(1, terms_of((0, 1))).advertise())


def test_who_was_lost_once_is_not_asked_again() -> None:
    played = a_round()
    gone = played.clients[9]
    gone.advertise()
    played.lose(9)
    played.until_masked()
    forged = write_unmask_answer(ROUND, 9, {id_: Revealed(Secret.SELF_MASK_SEED, 1) for id_ in IDS[:3]})
    with pytest.raises(ProtocolError, match="client 9 is not expected to send UNMASK_ANSWER"):
        played.server.receive(forged)


def test_missing_names_those_that_the_leg_still_waits_for() -> None:
    played = a_round()
    assert played.server.missing == [0, 3, 6, 9]
    played.server.receive(played.clients[3].advertise())
    assert played.server.missing == [0, 6, 9]


def test_no_leg_ends_out_of_turn_or_with_too_few() -> None:
    played = a_round()
    for end in (played.server.routed_shares, played.server.unmask_request, played.server.total):
        with pytest.raises(ProtocolError, match="the server collects ADVERTISEMENT, not"):
            end()
    with pytest.raises(ProtocolError, match="0 clients have sent ADVERTISEMENT; 3 are required"):
        played.server.key_list()


def test_the_sum_is_given_once() -> None:
    played = a_round()
    played.unmask(played.until_masked())
    with pytest.raises(ProtocolError, match="collects nothing"):
        played.server.total()


def test_shares_for_fewer_than_all_others_are_rejected() -> None:
    played = a_round()
    message = played.clients[0].share(played.advertise())
    envelope = Envelope(MessageKind.SHARES, ROUND, 0)
    sealed = read_sealed(message, envelope, 3)
    sealed.pop(9)
    with pytest.raises(ProtocolError, match="did not send shares for all others"):
        played.server.receive(write_sealed(envelope, sealed))
    assert played.server.receive(message) == 0


def test_a_vector_of_another_size_is_rejected() -> None:
    played = a_round()
    played.until_shared()
    with pytest.raises(ProtocolError, match="MASKED_VECTOR with 4 entries, not 5 to 5"):
        played.server.receive(bytes(write_masked_vector(ROUND, 0, played.vectors[0][:4])))


def test_an_answer_that_reveals_other_shares_than_asked_for_is_rejected() -> None:
    played = a_round()
    (revealed,) = with_answers(played, played.until_masked(), 3).values()
    revealed[0] = Revealed(Secret.MASKING_KEY, revealed[0].share)
    with pytest.raises(ProtocolError, match="did not reveal the requested shares"):
        played.server.receive(write_unmask_answer(ROUND, 9, revealed))


def test_with_a_false_share_among_more_than_enough_nothing_is_released() -> None:
    played = a_round()
    (revealed,) = with_answers(played, played.until_masked(), 3).values()
    revealed[0] = Revealed(Secret.SELF_MASK_SEED, revealed[0].share ^ 1)
    played.server.receive(write_unmask_answer(ROUND, 9, revealed))
    for _ in range(2):
        with pytest.raises(ProtocolError, match="not all of one secret"):
            played.server.total()


def test_with_a_false_share_of_the_key_of_a_lost_client_nothing_is_released() -> None:
    """Here there are no more shares than enough, and the public key reveals it."""
    played = a_round()
    routed = played.until_shared()
    played.lose(9)
    others = with_answers(played, played.mask(routed), 2)
    revealed = others[6]
    revealed[9] = Revealed(Secret.MASKING_KEY, revealed[9].share ^ 1)
    played.server.receive(write_unmask_answer(ROUND, 6, revealed))
    with pytest.raises(ProtocolError, match="another masking key than client 9 advertised"):
        played.server.total()


@pytest.mark.parametrize("size", [0, 2**32])
def test_a_vector_without_coordinates_or_with_too_many_is_rejected(size: int) -> None:
    with pytest.raises(ProtocolError, match="a vector has from 1 to"):
        SecureServer(terms_of(IDS), size)
