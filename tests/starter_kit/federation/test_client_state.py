import torch

from starter_kit.federation.client_state import LocalState


def test_a_state_is_the_same_after_it_travelled() -> None:
    whole = torch.arange(6.0)
    tensors = {
        "dual/of the first": whole,
        "shares its memory": whole[2:],
        "transposed": whole.view(2, 3).T,
        "double": torch.tensor([1 / 3], dtype=torch.float64),
        "steps": torch.tensor(7),
        "secrets": torch.tensor([0, 255], dtype=torch.uint8),
    }
    arrived = LocalState.from_bytes(LocalState(tensors, b"\x00\xff").to_bytes())
    assert arrived.secrets == b"\x00\xff"
    assert arrived.tensors.keys() == tensors.keys()
    assert all(torch.equal(arrived.tensors[name], tensor) for name, tensor in tensors.items())
    assert {name: tensor.dtype for name, tensor in arrived.tensors.items()} == {
        name: tensor.dtype for name, tensor in tensors.items()
    }


def test_a_client_that_keeps_nothing_takes_no_bytes() -> None:
    assert LocalState().to_bytes() == b""
    assert LocalState.from_bytes(b"") == LocalState()
