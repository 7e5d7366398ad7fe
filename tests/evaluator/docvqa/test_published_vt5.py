"""Our VT5 against what the published implementation computed from the same weights and pages."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from evaluator.docvqa.images import to_pixels
from evaluator.docvqa.reference import open_reference
from evaluator.docvqa.vt5 import VT5, Batch
from tests.tiny_reference import mean_loss

CONVERTED = Path(__file__).parents[1] / "data" / "vt5-reference"
# The folder as the published code wrote it, where a copy lies beside the repository.
ORIGINAL = Path(__file__).parents[4] / "shared" / "data" / "vt5-reference"

pytestmark = pytest.mark.parametrize(
    "folder",
    [
        pytest.param(CONVERTED, id="converted"),
        pytest.param(
            ORIGINAL,
            id="original",
            marks=pytest.mark.skipif(not ORIGINAL.is_dir(), reason=f"no original VT5 folder at {ORIGINAL}"),
        ),
    ],
    indirect=True,
)


class Published:
    """The folder's model, set to batch as published, with its six questions and its expected outputs."""

    def __init__(self, folder: Path) -> None:
        self.model, self.tokenizer = open_reference(folder)
        self.model.config = self.model.config.model_copy(update={"published_batching": True})
        self.expected: dict[str, Any] = json.loads((folder / "expected.json").read_text())
        with np.load(folder / "expected.npz") as arrays:
            self.arrays = {name: torch.from_numpy(arrays[name]) for name in arrays}
        given = self.expected["batch"]
        size = self.expected["preprocess"]["size"]
        pixels = torch.stack([to_pixels(Image.open(folder / name), size) for name in given["images"]])
        self.batch = Batch.pad(
            [
                self.tokenizer.encode(question, words, boxes, self.expected["max_input_tokens"])
                for question, words, boxes in zip(
                    given["questions"], given["words"], given["boxes"], strict=True
                )
            ],
            self.model.page_features(pixels),
            self.tokenizer.encode_answers([answers[0] for answers in given["answers"]]),
        )

    def one_by_one(self) -> list[Batch]:
        lengths = self.batch.attention_mask.sum(1).tolist()
        return [
            Batch(
                self.batch.input_ids[row : row + 1, :length],
                self.batch.boxes[row : row + 1, :length],
                self.batch.attention_mask[row : row + 1, :length],
                self.batch.features[row : row + 1],
            )
            for row, length in enumerate(lengths)
        ]


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


@pytest.fixture(scope="module")
def published(folder: Path) -> Published:
    return Published(folder)


def assert_close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


def test_embeddings_are_the_published_ones(published: Published) -> None:
    batch = published.batch
    embeddings = published.model.embed(batch.input_ids, batch.boxes, batch.features)
    assert_close(embeddings, published.arrays["inputs_embeds"])


def test_encoder_output_and_its_mask_are_the_published_ones(published: Published) -> None:
    encoded, mask = published.model.encode(published.batch)
    assert_close(encoded, published.arrays["encoder_last"])
    assert mask.sum(1).tolist() == published.expected["attention_mask_sum"]


def test_logits_and_loss_are_the_published_ones(published: Published) -> None:
    assert_close(published.model.logits(published.batch), published.arrays["logits"])
    assert mean_loss(published.model, published.batch).item() == pytest.approx(
        published.expected["loss"], abs=1e-4
    )


def test_labels_are_the_published_ones(published: Published) -> None:
    assert published.batch.labels is not None
    assert published.batch.labels.tolist() == published.expected["labels"]


def test_answers_and_confidences_are_the_published_ones(published: Published) -> None:
    ids, confidences = published.model.generate(published.batch)
    assert [published.tokenizer.decode(row) for row in ids.tolist()] == published.expected["generated"]
    assert confidences.tolist() == pytest.approx(published.expected["confidence"], rel=1e-4)


def test_by_default_a_batch_gives_what_the_published_batching_gives_one_by_one(published: Published) -> None:
    alone = [published.model.generate(batch) for batch in published.one_by_one()]
    model = VT5(published.model.config.model_copy(update={"published_batching": False})).eval()
    model.load_state_dict(published.model.state_dict())

    ids, confidences = model.generate(published.batch)

    decode = published.tokenizer.decode
    assert [decode(row) for row in ids.tolist()] == [decode(row[0].tolist()) for row, _ in alone]
    assert confidences.tolist() == pytest.approx([value.item() for _, value in alone], rel=1e-4)


def test_boxes_count_for_nothing_but_at_the_page_edge_under_the_published_scale(published: Published) -> None:
    batch, embed = published.batch, published.model.embed
    inner = (batch.boxes > 0) & (batch.boxes < 1)
    moved = replace(batch, boxes=batch.boxes.masked_fill(inner, 0.5))
    assert torch.equal(
        embed(batch.input_ids, batch.boxes, batch.features),
        embed(moved.input_ids, moved.boxes, moved.features),
    )
