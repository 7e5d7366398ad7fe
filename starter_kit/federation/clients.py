"""The clients of a dataset, each with its providers and their examples."""

from evaluator.docvqa.dataset import Dataset
from evaluator.errors import ErrorCode, ProblemError
from starter_kit.federation.rounds import Client


def clients_of(dataset: Dataset) -> list[Client]:
    """Return the dataset's clients with their providers' examples. A listed provider may have none.

    Raises:
        ProblemError: (`E_DATASET_FORMAT`) There are no clients, or two share a provider.
    """
    examples: dict[str, list[int]] = {}
    for index, question in enumerate(dataset.questions):
        examples.setdefault(dataset.provider(question.page), []).append(index)
    listed = [provider for providers in dataset.info.clients.values() for provider in providers]
    if not listed or len(set(listed)) < len(listed):
        raise ProblemError.of(
            ErrorCode.DATASET_FORMAT,
            where=f"{dataset.folder}/dataset.json, clients",
            expected="each provider's data held by exactly one client",
            found="no clients" if not listed else "a provider that is listed twice",
        )
    return [
        Client(client, {provider: examples.get(provider, []) for provider in providers})
        for client, providers in sorted(dataset.info.clients.items())
    ]
