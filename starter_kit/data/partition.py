"""The partition of a data set: training providers over clients, documents over training, validation and test.

A provider's training documents all belong to one client. Validation and test hold further documents of training
providers (seen) and all documents of providers that training never meets (unseen), as in the paper (section 3).
"""

import heapq
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

from evaluator.errors import ErrorCode, ProblemError

SHARES = {"test": 0.2, "valid": 0.1}  # of the held-out splits, in all documents
UNSEEN_SHARE = 0.5  # of unseen providers' documents, in each held-out split
IID, SIZE, DIRICHLET = "iid", "size", "dirichlet:"
# Beyond, shares are as good as equal; below, one client has nearly everything.
ALPHAS = (0.01, 1000)


@dataclass(frozen=True)
class Partition:
    """The split of each document, and the training providers of each client."""

    splits: dict[str, str]
    clients: dict[int, list[str]]


def _known_rule(rule: str) -> str:
    if rule not in {IID, SIZE} and not ALPHAS[0] <= _alpha(rule) <= ALPHAS[1]:
        raise ValueError(
            f"{IID}, {SIZE} or {DIRICHLET} and a number from {ALPHAS[0]} to {ALPHAS[1]}, such as {DIRICHLET}0.5"
        )
    return rule


def _alpha(rule: str) -> float:
    """Return the parameter of a Dirichlet rule; 0 if it is none."""
    try:
        return float(rule.removeprefix(DIRICHLET)) if rule.startswith(DIRICHLET) else 0
    except ValueError:
        return 0


Rule = Annotated[str, AfterValidator(_known_rule)]


def partition(documents: Mapping[str, str], clients: int, rng: random.Random, rule: Rule = IID) -> Partition:
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
    sizes_in_training = Counter(documents[document] for document, split in splits.items() if split == "train")
    return Partition(splits, deal({one: sizes_in_training[one] for one in training}, clients, rng, rule))


def deal(
    documents: Mapping[str, int], clients: int, rng: random.Random, rule: Rule = IID
) -> dict[int, list[str]]:
    """Divide providers (provider -> number of its training documents) among clients, each of which gets one at least.

    `iid`: at random; numbers of providers differ by at most one. Equal numbers matter to track 2: a provider's sampling
    rate is set by the client with the fewest providers. The other rules give each provider to the client that lacks
    most documents of its share. `size`: shares are equal, and the largest providers come first. `dirichlet:α`: shares
    are drawn from a symmetric Dirichlet distribution, and providers come in random order.
    """
    if len(documents) < clients:
        raise ProblemError.of(
            ErrorCode.DATASET_FORMAT,
            message="There are too few training providers for the clients.",
            where="--clients",
            expected=f"at least {clients} training providers",
            found=len(documents),
            next_step="Give more documents of more providers, or ask for fewer clients.",
        )
    shuffled = rng.sample(list(documents), len(documents))
    if rule == IID:
        return {client: sorted(shuffled[client::clients]) for client in range(clients)}
    if rule == SIZE:
        shuffled.sort(key=lambda provider: -documents[provider])
    shares = [1.0 if rule == SIZE else rng.gammavariate(_alpha(rule), 1) for _ in range(clients)]
    total = sum(documents.values()) / (sum(shares) or 1)
    dealt: dict[int, list[str]] = {client: [provider] for client, provider in enumerate(shuffled[:clients])}
    excess = [(documents[shuffled[client]] - share * total, client) for client, share in enumerate(shares)]
    heapq.heapify(excess)
    for provider in shuffled[clients:]:
        over, client = excess[0]
        dealt[client].append(provider)
        heapq.heapreplace(excess, (over + documents[provider], client))
    return {client: sorted(providers) for client, providers in dealt.items()}
