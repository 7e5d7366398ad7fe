"""What a client rejects, and what it never gives away."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from scipy import stats

from starter_kit.secure_aggregation import ProtocolError
from starter_kit.secure_aggregation.client import SecureClient
from starter_kit.secure_aggregation.keys import KeySchedule, PublicKeys, transcript_of
from starter_kit.secure_aggregation.masks import Mask, add_masks, pairwise_sign
from starter_kit.secure_aggregation.messages import (
    Envelope,
    MessageKind,
    Revealed,
    Secret,
    read_key_list,
    read_sealed,
    read_unmask_answer,
    vector_in,
    write_key_list,
    write_sealed,
    write_unmask_request,
)
from starter_kit.secure_aggregation.protocol_state import ProtocolState
from starter_kit.secure_aggregation.sharing import reconstruct
from tests.starter_kit.secure_aggregation.whole_round import ROUND, Round, random_vectors, terms_of

IDS = (0, 3, 6, 9, 12)
ZEROS = np.zeros(4, np.uint32)


def a_round(threshold: int = 3) -> Round:
    """Five clients with the ids of `IDS`."""
    return Round(random_vectors(5, 4), threshold)


def answer_of(client: SecureClient, id_: int, survivors: tuple[int, ...]) -> dict[int, Revealed]:
    answer = client.unmask(write_unmask_request(ROUND, survivors))
    return read_unmask_answer(answer, Envelope(MessageKind.UNMASK_ANSWER, ROUND, id_), len(IDS))


def restored(client: SecureClient) -> SecureClient:
    return SecureClient.from_bytes(client.to_bytes())


def rerouted(routed: bytes, recipient: int, change: dict[int, bytes]) -> bytes:
    """The message with the shares of some senders replaced."""
    envelope = Envelope(MessageKind.ROUTED_SHARES, ROUND, recipient)
    return write_sealed(envelope, read_sealed(routed, envelope, len(IDS)) | change)


# What is revealed


def test_an_answer_reveals_seeds_of_survivors_and_masking_keys_of_the_lost() -> None:
    played = a_round()
    played.until_masked()
    revealed = answer_of(played.clients[0], 0, (0, 3, 6))
    assert {id_: it.secret for id_, it in revealed.items()} == {
        0: Secret.SELF_MASK_SEED,
        3: Secret.SELF_MASK_SEED,
        6: Secret.SELF_MASK_SEED,
        9: Secret.MASKING_KEY,
        12: Secret.MASKING_KEY,
    }


@pytest.mark.parametrize("second", [(0, 3, 6, 9), (0, 3, 6, 9, 12), (0, 3, 6), (0, 3, 9)])
def test_a_second_request_with_other_survivors_is_rejected_also_by_a_restored_client(
    second: tuple[int, ...],
) -> None:
    played = a_round()
    played.until_masked()
    client = played.clients[0]
    answer_of(client, 0, (0, 3, 6, 12))
    for asked in (client, restored(client)):
        with pytest.raises(ProtocolError, match="already revealed for other survivors"):
            answer_of(asked, 0, second)


def test_the_same_request_gets_the_same_answer_again() -> None:
    played = a_round()
    request = played.until_masked()
    client = played.clients[3]
    assert client.unmask(request) == restored(client).unmask(request)


def test_requests_that_differ_between_clients_never_give_both_secrets_of_one() -> None:
    """With t > n/2: whatever each client learns of the last one, only one of its secrets comes together."""
    others = IDS[:-1]
    for told_lost in product([True, False], repeat=len(others)):
        played = a_round()
        played.until_masked()
        shares: dict[Secret, dict[int, int]] = {secret: {} for secret in Secret}
        for id_, lost in zip(others, told_lost, strict=True):
            it = answer_of(played.clients[id_], id_, others if lost else IDS)[12]
            shares[it.secret][id_] = it.share
        own = answer_of(played.clients[12], 12, IDS)[12]
        shares[own.secret][12] = own.share
        assert sum(len(of_one) >= 3 for of_one in shares.values()) == 1
        for secret, of_one in shares.items():
            if len(of_one) >= 3:
                state = ProtocolState.from_bytes(played.clients[12].to_bytes())
                seed, key = state.self_mask_seed, state.masking_private
                assert reconstruct(of_one, 3) == (seed if secret is Secret.SELF_MASK_SEED else key)


@pytest.mark.parametrize(
    ("survivors", "complaint"),
    [
        ((0, 3), "only 2 vectors arrived; a sum has 3"),
        ((0,), "only 1 vectors arrived"),
        ((0, 3, 5), "with which this one shares no mask"),
        ((3, 6, 9), "own vector as lost"),
    ],
)
def test_a_request_that_no_honest_server_makes_is_rejected(
    survivors: tuple[int, ...], complaint: str
) -> None:
    played = a_round()
    played.until_masked()
    with pytest.raises(ProtocolError, match=complaint):
        answer_of(played.clients[0], 0, survivors)
    assert answer_of(played.clients[0], 0, IDS)


def test_a_late_vector_of_a_client_said_to_be_lost_stays_under_its_own_mask() -> None:
    """Whoever knows all pairwise masks of a client, as the server of a lost one does, still sees uniform numbers."""
    played = Round({id_: np.zeros(50_000, np.uint32) for id_ in IDS}, 3)
    key_list = played.advertise()
    routed = played.share(key_list)
    late = vector_in(played.clients[12].mask(routed[12], played.vectors[12])).copy()
    state = ProtocolState.from_bytes(played.clients[12].to_bytes())
    keys = read_key_list(key_list, ROUND, 5)
    schedule = KeySchedule(ROUND, transcript_of(key_list, state.terms))
    for id_ in IDS[:-1]:
        shared = schedule.pairwise_mask(state.masking_private, keys[id_].masking, 12, id_)
        add_masks(late, [Mask(shared, pairwise_sign(12, id_)).reversed()])
    assert stats.chisquare(np.bincount(late.view(np.uint8), minlength=256)).pvalue > 1e-7
    add_masks(late, [Mask(schedule.self_mask(state.self_mask_seed, 12), -1)])
    assert not late.any()


# Shares


@pytest.mark.parametrize("position", [0, 11, 12, 50, 93])
def test_changed_shares_are_rejected_and_the_true_ones_taken_afterwards(position: int) -> None:
    played = a_round()
    routed = played.until_shared()[0]
    sealed = read_sealed(routed, Envelope(MessageKind.ROUTED_SHARES, ROUND, 0), 4)[3]
    changed = bytearray(sealed)
    changed[position] ^= 1
    with pytest.raises(ProtocolError, match="the shares don't open"):
        played.clients[0].mask(rerouted(routed, 0, {3: bytes(changed)}), ZEROS)
    assert played.clients[0].mask(routed, ZEROS)


def test_shares_of_another_sender_or_recipient_or_the_clients_own_do_not_open() -> None:
    played = a_round()
    own = {}
    key_list = played.advertise()
    for id_, client in played.clients.items():
        played.server.receive(message := client.share(key_list))
        own[id_] = read_sealed(message, Envelope(MessageKind.SHARES, ROUND, id_), 4)
    routed = played.server.routed_shares()[0]
    from_six = read_sealed(routed, Envelope(MessageKind.ROUTED_SHARES, ROUND, 0), 4)[6]
    for replayed in (from_six, own[3][6], own[0][3]):
        with pytest.raises(ProtocolError, match="the shares don't open"):
            played.clients[0].mask(rerouted(routed, 0, {3: replayed}), ZEROS)


def test_shares_of_another_run_do_not_open() -> None:
    replayed = a_round().until_shared()[0]
    played = a_round()
    played.until_shared()
    with pytest.raises(ProtocolError, match="the shares don't open"):
        played.clients[0].mask(replayed, ZEROS)


def test_shares_of_another_round_or_for_another_client_are_rejected() -> None:
    played = a_round()
    routed = played.until_shared()
    with pytest.raises(ProtocolError, match="client is 3, where 0 was expected"):
        played.clients[0].mask(routed[3], ZEROS)
    sealed = read_sealed(routed[0], Envelope(MessageKind.ROUTED_SHARES, ROUND, 0), 4)
    with pytest.raises(ProtocolError, match="round is 8, where 7 was expected"):
        played.clients[0].mask(write_sealed(Envelope(MessageKind.ROUTED_SHARES, 8, 0), sealed), ZEROS)


def test_shares_of_too_few_clients_are_rejected() -> None:
    played = a_round()
    routed = played.until_shared()[0]
    envelope = Envelope(MessageKind.ROUTED_SHARES, ROUND, 0)
    (one, sealed), *_ = read_sealed(routed, envelope, 4).items()
    with pytest.raises(ProtocolError, match="only 2 clients have sent shares; 3 are required"):
        played.clients[0].mask(write_sealed(envelope, {one: sealed}), ZEROS)


def test_shares_of_an_unknown_client_are_rejected() -> None:
    played = a_round()
    routed = played.until_shared()[0]
    envelope = Envelope(MessageKind.ROUTED_SHARES, ROUND, 0)
    sealed = read_sealed(routed, envelope, 4)
    sealed[4] = sealed.pop(3)
    with pytest.raises(ProtocolError, match="not on the list of keys"):
        played.clients[0].mask(write_sealed(envelope, sealed), ZEROS)


def test_clients_with_different_lists_of_keys_cannot_open_shares_of_each_other() -> None:
    played = a_round()
    key_list = played.advertise()
    keys = read_key_list(key_list, ROUND, 5)
    shorter = write_key_list(ROUND, {id_: keys[id_] for id_ in IDS[:4]})
    sealed = {}
    for id_ in IDS[:4]:
        message = played.clients[id_].share(key_list if id_ == 0 else shorter)
        sealed[id_] = read_sealed(message, Envelope(MessageKind.SHARES, ROUND, id_), 4)
    to_three = write_sealed(
        Envelope(MessageKind.ROUTED_SHARES, ROUND, 3), {id_: sealed[id_][3] for id_ in (0, 6, 9)}
    )
    with pytest.raises(ProtocolError, match="the shares don't open"):
        played.clients[3].mask(to_three, ZEROS)


# Lists of keys


def key_lists(keys: dict[int, PublicKeys]) -> dict[str, dict[int, PublicKeys]]:
    stranger = PublicKeys(b"s" * 32, b"t" * 32)
    return {
        "only 2 clients have sent keys; 3 are required": {id_: keys[id_] for id_ in IDS[:2]},
        "was not invited": {**{id_: keys[id_] for id_ in IDS[:4]}, 5: stranger},
        "lacks this client's own": {id_: of for id_, of in keys.items() if id_ != 0},
        "lacks this client's own ": {**keys, 0: stranger},
        "a public key is on the list twice": {**keys, 12: PublicKeys(b"s" * 32, keys[0].encryption)},
        "a public key is on the list twice ": {**keys, 12: PublicKeys(keys[3].encryption, b"s" * 32)},
    }


@pytest.mark.parametrize("complaint", key_lists(dict.fromkeys(IDS, PublicKeys(b"", b""))))
def test_a_list_of_keys_that_no_honest_server_makes_is_rejected(complaint: str) -> None:
    played = a_round()
    keys = read_key_list(played.advertise(), ROUND, 5)
    with pytest.raises(ProtocolError, match=complaint.strip()):
        played.clients[0].share(write_key_list(ROUND, key_lists(keys)[complaint]))


def test_a_key_that_gives_everybody_the_same_secret_is_rejected() -> None:
    played = a_round()
    keys = read_key_list(played.advertise(), ROUND, 5) | {3: PublicKeys(b"s" * 32, bytes(32))}
    with pytest.raises(ProtocolError, match="gives no secret"):
        played.clients[0].share(write_key_list(ROUND, keys))


def test_a_list_of_keys_of_another_round_is_rejected() -> None:
    played = a_round()
    keys = read_key_list(played.advertise(), ROUND, 5)
    with pytest.raises(ProtocolError, match="round is 8"):
        played.clients[0].share(write_key_list(8, keys))


# Turns and state


def test_no_leg_can_be_done_twice_or_out_of_turn() -> None:
    played = a_round()
    client = SecureClient(0, terms_of(IDS, 3))
    for call in (lambda: client.share(b""), lambda: client.mask(b"", ZEROS), lambda: client.unmask(b"")):
        with pytest.raises(ProtocolError, match="next step is ADVERTISE"):
            call()
    key_list = played.advertise()
    client = played.clients[0]
    with pytest.raises(ProtocolError, match="next step is SHARE, not ADVERTISE"):
        client.advertise()
    routed = played.share(key_list)
    client = played.clients[0]
    with pytest.raises(ProtocolError, match="next step is MASK, not SHARE"):
        client.share(key_list)
    client.mask(routed[0], ZEROS)
    for asked in (client, restored(client)):
        with pytest.raises(ProtocolError, match="next step is UNMASK, not MASK"):
            asked.mask(routed[0], ZEROS + np.uint32(1))


@pytest.mark.parametrize(
    "vector",
    [
        np.zeros(4),
        np.zeros(4, np.int32),
        np.zeros((2, 2), np.uint32),
        np.zeros(0, np.uint32),
        np.zeros(4, ">u4"),
    ],
    ids=["float", "signed", "matrix", "empty", "big-endian"],
)
def test_anything_but_a_vector_of_uint32_is_rejected(vector: np.ndarray) -> None:
    played = a_round()
    routed = played.until_shared()
    with pytest.raises(ProtocolError, match="a vector is one-dimensional, of uint32"):
        played.clients[0].mask(routed[0], vector)


def test_masking_does_not_change_the_vector_of_the_caller() -> None:
    played = a_round()
    vector = played.vectors[0].copy()
    played.until_masked()
    assert np.array_equal(played.vectors[0], vector)


@pytest.mark.parametrize(
    "change",
    [
        lambda state: b"",
        lambda state: state[:-1],
        lambda state: state.replace(b'"version":1', b'"version":2'),
        lambda state: state.replace(b'"threshold":3', b'"threshold":2'),
        lambda state: state.replace(b'"leg":1', b'"leg":5'),
        lambda state: state.replace(b'"self_mask_seed":"', b'"self_mask_seed":"AAAA'),
    ],
    ids=["empty", "cut off", "version", "threshold", "leg", "seed"],
)
def test_anything_but_a_saved_state_is_rejected_without_showing_it(
    change: Callable[[bytes], bytes],
) -> None:
    client = SecureClient(0, terms_of(IDS, 3))
    state = client.to_bytes()
    assert change(state) != state
    with pytest.raises(ProtocolError) as rejected:
        SecureClient.from_bytes(change(state))
    assert str(rejected.value) == "not the state of a client of secure aggregation"
    assert rejected.value.__suppress_context__
    assert "input_value" not in str(rejected.value.__context__)


def test_secrets_of_the_state_are_not_printed() -> None:
    played = a_round()
    played.until_masked()
    state = ProtocolState.from_bytes(played.clients[0].to_bytes())
    shown = repr(state) + repr(state.held) + repr(played.clients[0])
    for secret in (state.masking_private, state.encryption_private, state.self_mask_seed):
        assert repr(secret)[2:-1] not in shown
    assert str(state.held[3].seed) not in shown
    assert str(state.held[3].key) not in shown


def test_a_client_that_was_not_invited_is_rejected() -> None:
    with pytest.raises(ProtocolError, match="client 5 is not among those of round 7"):
        SecureClient(5, terms_of(IDS))


def test_two_clients_share_no_key() -> None:
    states = [ProtocolState.from_bytes(SecureClient(0, terms_of(IDS)).to_bytes()) for _ in range(2)]
    secrets = [key for s in states for key in (s.masking_private, s.encryption_private, s.self_mask_seed)]
    assert len(set(secrets)) == 6
