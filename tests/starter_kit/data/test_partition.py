from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.errors import ProblemError
from starter_kit.data.partition import deal, partition
from starter_kit.randomness import data_stream


def skewed_documents(sizes: list[int]) -> dict[str, str]:
    return {f"d{p}-{n}": f"provider {p}" for p, size in enumerate(sizes) for n in range(size)}


@given(st.lists(st.integers(1, 20), min_size=30, max_size=80), st.integers(0, 5))
def test_every_document_has_one_split_and_every_training_provider_one_client(
    sizes: list[int], seed: int
) -> None:
    documents = skewed_documents(sizes)
    result = partition(documents, 3, data_stream(seed))
    assert result.splits.keys() == documents.keys()
    training = {documents[document] for document, split in result.splits.items() if split == "train"}
    dealt = [provider for providers in result.clients.values() for provider in providers]
    assert sorted(dealt) == sorted(training)


@given(st.lists(st.integers(1, 20), min_size=30, max_size=80), st.integers(0, 5))
def test_the_same_seed_gives_the_same_partition_whatever_the_order(sizes: list[int], seed: int) -> None:
    documents = skewed_documents(sizes)
    backwards = dict(reversed(documents.items()))
    first = partition(documents, 3, data_stream(seed))
    assert first == partition(backwards, 3, data_stream(seed))


def test_held_out_splits_have_their_share_half_of_it_unseen() -> None:
    documents = skewed_documents([4] * 100)
    result = partition(documents, 10, data_stream(1))
    training = {provider for providers in result.clients.values() for provider in providers}
    counts = Counter((split, documents[d] in training) for d, split in result.splits.items())
    assert counts["valid", True] == counts["valid", False] == 20
    assert counts["test", True] == counts["test", False] == 40


def test_no_large_provider_makes_up_the_unseen_part() -> None:
    documents = skewed_documents([40] + [1] * 200)
    for seed in range(20):
        result = partition(documents, 10, data_stream(seed))
        assert any("provider 0" in providers for providers in result.clients.values())


def test_clients_get_as_many_providers_each_give_or_take_one() -> None:
    clients = deal([f"p{n}" for n in range(23)], 10, data_stream(0))
    assert sorted(len(providers) for providers in clients.values()) == [2] * 7 + [3] * 3


def test_too_few_providers_for_the_clients_are_rejected() -> None:
    with pytest.raises(ProblemError, match="at least 10 training providers"):
        deal(["one", "two"], 10, data_stream(0))
