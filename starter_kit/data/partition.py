"""The partition of a data set: training providers over clients, documents over training, validation and test.

A provider's training documents all belong to one client. Validation and test hold further documents of training
providers (seen) and all documents of providers that training never meets (unseen), as in the paper (section 3).
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluator.errors import ErrorCode, ProblemError

SHARES = {"test": 0.2, "valid": 0.1}  # of the held-out splits, in all documents
UNSEEN_SHARE = 0.5  # of unseen providers' documents, in each held-out split


@dataclass(frozen=True)
class Partition:
    """The split of each document, and the training providers of each client."""

    splits: dict[str, str]
    clients: dict[int, list[str]]


def partition(documents: Mapping[str, str], clients: int, rng: random.Random) -> Partition:
    """Split documents (document -> provider) and divide the training providers among clients.

    Unseen providers are taken whole, in random order, while they fit the share; one that alone would make up more
    than a fifth of it stays in training. Seen held-out documents are drawn from what providers have beyond one
    document, so that every training provider keeps one. Shares are met as far as the providers' sizes allow.

    Raises:
        ProblemError: `E_DATASET_FORMAT`, if fewer training providers than clients remain.
    """
    by_provider: dict[str, list[str]] = {}
    for document in sorted(documents):
        by_provider.setdefault(documents[document], []).append(document)
    providers = sorted(by_provider)
    rng.shuffle(providers)

    sizes = {split: round(share * len(documents)) for split, share in SHARES.items()}
    splits: dict[str, str] = {}
    training = providers
    for split, size in sizes.items():
        room = round(UNSEEN_SHARE * size)
        largest = max(1, room // 5)
        for provider in list(training):
            if len(by_provider[provider]) <= min(room, largest):
                room -= len(by_provider[provider])
                splits |= dict.fromkeys(by_provider[provider], split)
                training = [other for other in training if other != provider]

    spare: list[str] = []
    for provider in training:
        own = rng.sample(by_provider[provider], len(by_provider[provider]))
        splits[own[0]] = "train"
        spare += own[1:]
    rng.shuffle(spare)
    for split, size in sizes.items():
        wanted = size - round(UNSEEN_SHARE * size)
        splits |= dict.fromkeys(spare[:wanted], split)
        spare = spare[wanted:]
    splits |= dict.fromkeys(spare, "train")
    return Partition(splits, deal(training, clients, rng))


def deal(providers: Sequence[str], clients: int, rng: random.Random) -> dict[int, list[str]]:
    """Divide providers among clients at random; numbers of providers differ by at most one.

    Equal numbers matter to track 2: a provider's sampling rate is set by the client with the fewest providers.
    """
    if len(providers) < clients:
        raise ProblemError.of(
            ErrorCode.DATASET_FORMAT,
            message="There are too few training providers for the clients.",
            where="--clients",
            expected=f"at least {clients} training providers",
            found=len(providers),
            next_step="Give more documents of more providers, or ask for fewer clients.",
        )
    shuffled = rng.sample(list(providers), len(providers))
    return {client: sorted(shuffled[client::clients]) for client in range(clients)}
