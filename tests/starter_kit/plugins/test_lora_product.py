import pytest
import torch
from torch import Tensor

from evaluator.errors import ProblemError
from starter_kit.federation.rounds import Message
from starter_kit.settings.configuration import load_settings
from tests.starter_kit.plugins.examples import example, example_file

LORA_PRODUCT = example_file("lora_product")
ProductMean, mean_product = LORA_PRODUCT.ProductMean, LORA_PRODUCT.mean_product
GENERATOR = torch.Generator().manual_seed(11)
SHAPES = {
    "one.lora_A.weight": torch.Size([2, 5]),
    "one.lora_B.weight": torch.Size([4, 2]),
    "bias": torch.Size([3]),
}


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=GENERATOR)


def test_the_factors_have_the_nearest_product_to_the_mean_of_the_products() -> None:
    downs, ups = [random(2, 5) for _ in range(3)], [random(4, 2) for _ in range(3)]
    mean = sum(up @ down for up, down in zip(ups, downs, strict=True)) / 3
    down, up = mean_product(downs, ups)
    u, values, v = torch.linalg.svd(mean, full_matrices=False)
    assert torch.allclose(up @ down, (u[:, :2] * values[:2]) @ v[:2], atol=1e-5)
    assert torch.allclose(down @ down.T, torch.eye(2) / 3, atol=1e-6)


def test_the_mean_of_factors_is_off_by_the_product_of_their_differences() -> None:
    (a, b), (c, d) = [random(2, 5) for _ in range(2)], [random(4, 2) for _ in range(2)]
    products, factors = (c @ a + d @ b) / 2, (c + d) / 2 @ ((a + b) / 2)
    assert torch.allclose(products - factors, (c - d) @ (a - b) / 4, atol=1e-6)


def test_one_clients_product_arrives_whole_and_adapters_without_one_stay_alive() -> None:
    down, up = random(2, 5), random(4, 2)
    new_down, new_up = mean_product([down], [up])
    assert torch.allclose(new_up @ new_down, up @ down, atol=1e-5)
    new_down, new_up = mean_product([down, down], [torch.zeros(4, 2)] * 2)
    assert not new_up.any()
    assert torch.allclose(new_down.norm(dim=1), torch.full((2,), 3**-0.5), atol=1e-6)


def test_other_tensors_are_averaged_beside_the_adapters() -> None:
    weights, updates = random(21), [random(21), random(21)]
    received = ProductMean(weights, SHAPES)
    for client, update in enumerate(updates):
        received.add(Message(client, update))
    after = received.result().weights
    mean = weights + sum(updates) / 2
    assert torch.allclose(after[18:], mean[18:])
    assert not torch.allclose(after[:18], mean[:18], atol=1e-2)
    down, up = mean_product(
        [(weights + update)[:10].view(2, 5) for update in updates],
        [(weights + update)[10:18].view(4, 2) for update in updates],
    )
    assert torch.equal(after[:18], torch.cat([down.reshape(-1), up.reshape(-1)]))


def test_without_adapters_it_is_rejected() -> None:
    with pytest.raises(ProblemError, match="adapters"):
        load_settings(example("lora-product"), ["lora=null"])
