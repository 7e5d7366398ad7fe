import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from evaluator.docvqa.dataset import Dataset, DatasetInfo, write_info, write_split
from evaluator.docvqa.reference import open_reference
from evaluator.docvqa.tokenization import Tokenizer
from evaluator.errors import ErrorCode, ProblemError
from starter_kit.federation.clients import clients_of
from starter_kit.learning.documents import Documents
from starter_kit.learning.page_features import InMemory
from starter_kit.learning.trainable_model import TrainableModel
from tests.starter_kit.pocket_data import CLIENTS, PROVIDERS


def documents(base: Path, data: Path, max_input_tokens: int = 64) -> Documents:
    model, tokenizer = open_reference(base)
    dataset = Dataset(data, "train")
    return Documents(
        TrainableModel(model),
        tokenizer,
        dataset,
        examples=range(len(dataset.questions)),
        max_input_tokens=max_input_tokens,
        on_page=lambda done, total: None,
    )


def whole_features(examples: Documents) -> Tensor:
    """The features of all pages of examples whose pages are few."""
    assert isinstance(examples._features, InMemory)
    return examples._features.features


def test_the_loss_of_a_batch_is_the_token_weighted_mean_of_its_examples(base: Path, data: Path) -> None:
    examples = documents(base, data)
    tokenizer = Tokenizer.from_folder(base)
    answers = [question.answers[0].lower() for question in Dataset(data, "train").questions]
    lengths = [len(ids) for ids in tokenizer.encode_answers(answers)]
    chosen = [0, 5, 8]
    singles = sum(examples.loss([index]).item() * lengths[index] for index in chosen)
    together = examples.loss(chosen).item()
    assert together == pytest.approx(singles / sum(lengths[index] for index in chosen), rel=1e-4)


def test_each_group_has_the_loss_that_it_has_as_a_batch_of_its_own(base: Path, data: Path) -> None:
    examples = documents(base, data)
    groups = [[0, 5, 8], [3], [11, 3]]
    expected = [examples.loss(group).item() for group in groups]
    assert examples.losses(groups).tolist() == pytest.approx(expected, rel=1e-4)
    assert len({round(loss, 3) for loss in expected}) == 3


def test_a_batch_that_was_prepared_is_read_once_and_in_another_thread(base: Path, data: Path) -> None:
    examples = documents(base, data)
    expected = examples.loss([0, 5, 8])
    readers: list[int] = []

    class Watched(InMemory):
        def read(self, places: Sequence[int]) -> Tensor:
            readers.append(threading.get_ident())
            return super().read(places)

    examples._features = Watched(whole_features(examples))
    examples.prepare([0, 5, 8])
    assert torch.equal(examples.loss([0, 5, 8]), expected)
    assert len(readers) == 1
    assert readers[0] != threading.get_ident()
    examples.loss([0, 5, 8])
    assert readers[1] == threading.get_ident()


def test_the_longest_example_is_the_one_with_the_longest_text(base: Path, data: Path) -> None:
    examples = documents(base, data)
    lengths = {index: len(examples._texts.text(index)) for index in range(12)}
    assert lengths[examples.longest] == max(lengths.values()) > min(lengths.values())


@pytest.mark.parametrize(("examples", "pages"), [(range(12), len(PROVIDERS)), ([0, 1, 3], 2), ([], None)])
def test_every_page_that_is_needed_is_read_once_and_reported(
    base: Path, data: Path, examples: Sequence[int], pages: int | None
) -> None:
    reported: list[tuple[int, int]] = []
    model, tokenizer = open_reference(base)
    Documents(
        TrainableModel(model),
        tokenizer,
        Dataset(data, "train"),
        examples=examples,
        max_input_tokens=64,
        on_page=lambda done, total: reported.append((done, total)),
    )
    assert reported == ([(pages, pages)] if pages else [])


def test_the_page_image_matters(base: Path, data: Path) -> None:
    examples = documents(base, data)
    before = examples.loss([0]).item()
    examples._features = InMemory(torch.zeros_like(whole_features(examples)))
    assert examples.loss([0]).item() != before


def test_clients_have_their_providers_examples_and_no_others(data: Path) -> None:
    clients = clients_of(Dataset(data, "train"))
    assert {client.id: list(client.providers) for client in clients} == CLIENTS
    assert clients[0].providers == {"Ash": [0, 1], "Birch": [2, 3]}
    assert sorted(index for client in clients for index in client.examples) == list(range(12))


def test_a_listed_provider_without_pages_has_no_examples(data: Path) -> None:
    assert clients_of(Dataset(data, "train"))[2].providers["Ghost"] == []


@pytest.mark.parametrize("clients", [{}, {0: ["Ash"], 1: ["Ash", "Birch"]}], ids=["no clients", "twice"])
def test_a_partition_that_is_none_is_rejected(tmp_path: Path, clients: dict[int, list[str]]) -> None:
    write_info(tmp_path, DatasetInfo(name="bad", clients=clients))
    write_split(tmp_path, "train", [], [])
    with pytest.raises(ProblemError) as caught:
        clients_of(Dataset(tmp_path, "train"))
    assert caught.value.problem.code is ErrorCode.DATASET_FORMAT
