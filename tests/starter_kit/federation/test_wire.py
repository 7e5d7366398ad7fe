import pytest
import torch

from evaluator.errors import ErrorCode, ProblemError
from tests.starter_kit.toy import wire_from

START = torch.linspace(-3, 3, 128)


def test_an_exact_codec_carries_models_as_they_are() -> None:
    wire = wire_from(START)
    weights = START + torch.randn(128) * 1e-8
    assert torch.equal(wire.unpack_model(wire.pack_model(weights)), weights)
    assert len(wire.pack_model(weights)) == 4 * 128


def test_a_lossy_codec_loses_of_the_change_only() -> None:
    wire = wire_from(START, "nf4")
    change = torch.randn(128) * 1e-3
    arrived = wire.unpack_model(wire.pack_model(START + change))
    assert (arrived - START - change).abs().max() < 0.16 * change.abs().max()
    assert torch.equal(wire.unpack_model(wire.pack_model(START)), START)
    assert len(wire.pack_model(START)) == 128 * 4.5 / 8


def test_an_update_that_has_no_scale_is_rejected_with_a_code() -> None:
    with pytest.raises(ProblemError) as caught:
        wire_from(START, "nf4").pack_update(START * float("nan"))
    assert caught.value.problem.code is ErrorCode.CHECKPOINT_NOT_FINITE
    assert len(wire_from(START).pack_update(START * float("nan"))) == 4 * 128


@pytest.mark.parametrize("codec_name", ["float32", "nf4"])
def test_a_message_of_another_size_is_rejected(codec_name: str) -> None:
    wire = wire_from(START, codec_name)
    message = wire.pack_update(START)
    assert len(wire.unpack_update(message)) == 128
    with pytest.raises(ValueError, match="bytes"):
        wire.unpack_update(message[:-4])
