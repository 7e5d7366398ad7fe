"""Tests of my_plugin on vectors and on a small federation. To run them: python test_my_plugin.py"""

from pathlib import Path

import torch

from starter_kit.compression.plugin_codecs import CodecPlugin
from starter_kit.scaffolding.testing import run_tests
from starter_kit.scaffolding.toy import DIMENSION, Toy
from starter_kit.settings.configuration import load_settings
from starter_kit.settings.run_settings import RunSettings

CONFIG = str(Path(__file__).with_name("my_plugin.yaml"))


def settings(*changes: str) -> RunSettings:
    """Return the settings of the config, some of them changed."""
    return load_settings(CONFIG, ["local.learning_rate=0.02", *changes])


def codec() -> CodecPlugin:
    """Return the codec with the settings of the config."""
    known = settings().codec
    assert isinstance(known, CodecPlugin)
    return known


def test_a_message_is_what_the_text_says() -> None:
    vector = torch.tensor([0.5, -0.25, 0.0])
    assert codec().encode(vector, {}) == (1024 * vector).to(torch.float16).numpy().tobytes()


def test_what_arrives_is_near_what_was_sent() -> None:
    vector = torch.randn(1000, generator=torch.Generator().manual_seed(1)) / 100
    arrived = codec().decode(codec().encode(vector, {}), 1000)
    assert (arrived - vector).abs().max() < 1e-3 * vector.abs().max()


def test_a_message_of_another_length_is_rejected() -> None:
    try:
        codec().decode(b"123", 3)
    except ValueError:
        return
    raise AssertionError("three bytes became three numbers")


def test_a_run_learns_and_counts_the_bytes_that_are_sent() -> None:
    toy = Toy()
    *_, last = toy.run_settings(settings("clients_per_round=2"), 20)
    assert toy.distance(last.weights) < 0.2 * toy.distance(toy.weights)
    assert [message.size_bytes for message in last.messages] == [2 * DIMENSION] * 4


if __name__ == "__main__":
    run_tests(globals())
