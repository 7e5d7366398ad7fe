import random
from itertools import combinations

from starter_kit.randomness import Stream, data_stream


def test_a_stream_repeats_itself() -> None:
    first, again = Stream(7).at("round", 3).random(), Stream(7).at("round").at(3).random()
    assert [first.random() for _ in range(5)] == [again.random() for _ in range(5)]


def test_streams_of_other_names_or_seeds_are_others() -> None:
    streams = [
        Stream(7),
        Stream(8),
        Stream(7).at("a"),
        Stream(7).at("b"),
        Stream(7).at("a", "b"),
        Stream(7).at("ab"),
        Stream(7).at("a\x1fb"),
        Stream(7).at("1"),
        Stream(7).at(1),
        Stream(7).at(11),
    ]
    assert all(one.number != other.number for one, other in combinations(streams, 2))


def test_numbers_fit_a_generators_seed_and_are_spread_over_all_bits() -> None:
    numbers = [Stream(7).at(index).number for index in range(2000)]
    assert all(0 <= number < 2**63 for number in numbers)
    for bit in range(63):
        assert 850 < sum(number >> bit & 1 for number in numbers) < 1150


def test_only_a_seed_that_can_be_guessed_is_what_its_generators_are_made_from() -> None:
    for seed, gives_itself_away in ((7, True), (2**255 + 7, False)):
        made_from_it = random.Random(f"{seed}/clients").random()
        assert (data_stream(seed, "clients").random() == made_from_it) is gives_itself_away
