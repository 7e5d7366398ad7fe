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
    clients = deal({f"p{n}": n for n in range(23)}, 10, data_stream(0))
    assert sorted(len(providers) for providers in clients.values()) == [2] * 7 + [3] * 3


def test_too_few_providers_for_the_clients_are_rejected() -> None:
    with pytest.raises(ProblemError, match="at least 10 training providers"):
        deal({"one": 1, "two": 1}, 10, data_stream(0))


@given(
    st.lists(st.integers(1, 20), min_size=3, max_size=80),
    st.sampled_from(["iid", "size", "dirichlet:0.01", "dirichlet:0.5", "dirichlet:1000"]),
    st.integers(0, 5),
)
def test_every_rule_gives_each_provider_to_one_client_and_each_client_a_provider(
    sizes: list[int], rule: str, seed: int
) -> None:
    documents = {f"p{number}": size for number, size in enumerate(sizes)}
    clients = deal(documents, 3, data_stream(seed), rule)
    assert sorted(provider for providers in clients.values() for provider in providers) == sorted(documents)
    assert all(clients[client] for client in range(3))
    assert clients == deal(documents, 3, data_stream(seed), rule)


def documents_by_client(rule: str, seed: int = 1) -> list[int]:
    documents = {f"p{number}": 1 + number % 9 for number in range(400)}
    clients = deal(documents, 10, data_stream(seed), rule)
    return [sum(documents[provider] for provider in providers) for providers in clients.values()]


def test_by_size_clients_have_as_many_documents_each() -> None:
    documents = documents_by_client("size")
    assert max(documents) - min(documents) <= 1


def test_a_lower_parameter_of_the_dirichlet_distribution_makes_clients_less_even() -> None:
    def evenness(rule: str) -> float:
        """The effective number of clients, a mean over seeds: 10 if all have as many documents."""
        parts = [documents_by_client(rule, seed) for seed in range(40)]
        return sum(sum(part) ** 2 / sum(n * n for n in part) for part in parts) / len(parts)

    even, half, tenth = (evenness(f"dirichlet:{alpha}") for alpha in (1000, 0.5, 0.1))
    assert even > 9.9
    # A Dirichlet distribution's expected sum of squares is (α + 1) / (10 α + 1).
    assert 3.5 < half < 6
    assert 1.5 < tenth < 3
