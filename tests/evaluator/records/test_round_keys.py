"""A run's secret gives each round keys of its own, and a record can commit to them and open one."""

import inspect
from itertools import product

import pytest

from evaluator.messages.jobs import SERVER
from evaluator.records.round_keys import (
    OpenedKeys,
    RunKeys,
    draws_key,
    is_committed,
    key_path,
    keys_root,
    replayed_rounds,
    round_key,
)

SECRET, OTHER = bytes(range(32)), bytes(range(1, 33))
TOKEN = "a-token-of-the-site"
CHALLENGE = "5" * 64


def test_the_keys_are_those_of_rfc_5869() -> None:
    """Computed with HMAC alone, so that another implementation can follow the module's docstring."""
    from hashlib import sha256
    from hmac import digest

    def hkdf(key: bytes, salt: bytes, info: bytes) -> bytes:
        return digest(digest(salt or bytes(32), key, sha256), info + b"\1", sha256)

    of_round = hkdf(SECRET, b"", b"pfl round key" + (3).to_bytes(8, "big"))
    assert round_key(SECRET, 3) == of_round
    info = b"pfl draws" + (1).to_bytes(8, "big") + (-1).to_bytes(8, "big", signed=True)
    assert draws_key(of_round, TOKEN, 1, SERVER) == hkdf(of_round, TOKEN.encode(), info)


def test_every_round_party_interruption_run_and_secret_has_a_key_of_its_own() -> None:
    cases = product((SECRET, OTHER), (TOKEN, None), (0, 1), (1, 2, 3), (SERVER, 0, 1))
    keys = [RunKeys(secret, token, begun).key(number, party) for secret, token, begun, number, party in cases]
    assert len(set(keys)) == len(keys) == 2 * 2 * 2 * 3 * 3


def test_an_opened_round_has_the_keys_of_the_run_in_that_round_and_in_no_other() -> None:
    opened = OpenedKeys(2, round_key(SECRET, 2), TOKEN, 1)
    assert opened.key(2, 7) == RunKeys(SECRET, TOKEN, 1).key(2, 7)
    with pytest.raises(ValueError, match="round 3 isn't"):
        opened.key(3, 7)


def test_an_opening_contains_nothing_from_which_another_round_is_derived() -> None:
    """What can be tested of it: no key, secret or inner hash of another round is in it or in what follows from it."""
    rounds = 5
    opened, path = round_key(SECRET, 2), key_path(SECRET, rounds, 2)
    others = {round_key(SECRET, number) for number in (1, 3, 4, 5)} | {SECRET}
    shown = {opened, *map(bytes.fromhex, path), bytes.fromhex(keys_root(SECRET, rounds))}
    derived = {round_key(one, number) for one in shown for number in range(1, rounds + 1)}
    assert not others & (shown | derived)
    assert "secret" not in inspect.signature(OpenedKeys).parameters


@pytest.mark.parametrize("rounds", [1, 2, 3, 7, 8])
def test_each_round_opens_to_the_root_and_nothing_else_does(rounds: int) -> None:
    root = keys_root(SECRET, rounds)
    for number in range(1, rounds + 1):
        key, path = round_key(SECRET, number), key_path(SECRET, rounds, number)
        assert is_committed(key, number, path, root=root, rounds=rounds)
        assert not is_committed(round_key(OTHER, number), number, path, root=root, rounds=rounds)
        assert not is_committed(key, number % rounds + 1, path, root=root, rounds=rounds) or rounds == 1
        assert not is_committed(key, number, [*path, root], root=root, rounds=rounds)
        assert not is_committed(key, number, path, root=keys_root(OTHER, rounds), rounds=rounds)
    assert not is_committed(key, 0, path, root=root, rounds=rounds)
    assert not is_committed(key, rounds + 1, path, root=root, rounds=rounds)


def test_the_last_round_is_always_replayed_and_every_other_one_can_be_drawn() -> None:
    challenges = [f"{number:064x}" for number in range(200)]
    drawn = [replayed_rounds(challenge, 7, 3) for challenge in challenges]
    assert all(len(numbers) == 4 and numbers[-1] == 7 and numbers == sorted(numbers) for numbers in drawn)
    assert {number for numbers in drawn for number in numbers} == set(range(1, 8))
    assert drawn == [replayed_rounds(challenge, 7, 3) for challenge in challenges]


def test_a_run_with_few_rounds_is_replayed_as_a_whole() -> None:
    assert replayed_rounds(CHALLENGE, 1, 3) == [1]
    assert replayed_rounds(CHALLENGE, 3, 3) == [1, 2, 3]
    assert replayed_rounds(CHALLENGE, 3, 0) == [3]


def test_secrets_and_keys_are_not_shown() -> None:
    assert SECRET.hex() not in repr(RunKeys(SECRET, TOKEN))
    assert repr(SECRET) not in repr(RunKeys(SECRET, TOKEN))
    assert "round_key" not in repr(OpenedKeys(1, SECRET, TOKEN, 0))
