import struct

import pytest
import torch

from starter_kit.compression.codecs import codec


@pytest.mark.parametrize("name", ["float32", "nf4"])
def test_a_codec_is_found_by_its_name(name: str) -> None:
    assert codec(name).name == name


def test_float32_writes_little_endian_values_in_order() -> None:
    assert codec("float32").encode(torch.tensor([1.0, -2.5])) == struct.pack("<ff", 1.0, -2.5)


def test_float32_is_exact_to_the_bit() -> None:
    vector = torch.tensor([0.0, -0.0, 1e-45, 3.4e38, float("inf"), float("nan"), 0.1])
    decoded = codec("float32").decode(codec("float32").encode(vector), 7)
    assert torch.equal(decoded.view(torch.int32), vector.view(torch.int32))


@pytest.mark.parametrize("name", ["float32", "nf4"])
def test_a_message_has_the_bits_per_parameter_that_its_codec_states(name: str) -> None:
    assert 8 * len(codec(name).encode(torch.randn(640))) == codec(name).bits_per_parameter * 640


@pytest.mark.parametrize("name", ["float32", "nf4"])
def test_a_codec_states_truly_whether_it_is_exact(name: str) -> None:
    vector = torch.randn(1000)
    assert torch.equal(codec(name).decode(codec(name).encode(vector), 1000), vector) == codec(name).exact


@pytest.mark.parametrize("name", ["float32", "nf4"])
@pytest.mark.parametrize("size", [0, 1, 65])
def test_a_decoded_vector_can_be_changed_and_leaves_the_message_alone(name: str, size: int) -> None:
    message = codec(name).encode(torch.ones(size))
    vector = codec(name).decode(message, size)
    vector += 1
    assert (vector.dtype, vector.tolist()) == (torch.float32, [2.0] * size)
    assert codec(name).decode(message, size).tolist() == [1.0] * size


@pytest.mark.parametrize("name", ["float32", "nf4"])
@pytest.mark.parametrize("size", [-1, 0, 98, 101])
def test_a_message_of_another_length_is_rejected(name: str, size: int) -> None:
    message = codec(name).encode(torch.randn(100))
    with pytest.raises(ValueError, match="bytes"):
        codec(name).decode(message, size)


@pytest.mark.parametrize("name", ["float32", "nf4"])
@pytest.mark.parametrize(
    "vector", [torch.ones(2, 2), torch.ones(2, dtype=torch.float64), torch.ones(2, device="meta")]
)
def test_only_a_float32_vector_on_the_cpu_is_encoded(name: str, vector: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="float32 vector"):
        codec(name).encode(vector)


def test_a_vector_that_takes_part_in_training_is_encoded_by_its_values() -> None:
    assert codec("nf4").encode(torch.ones(3, requires_grad=True)) == codec("nf4").encode(torch.ones(3))
