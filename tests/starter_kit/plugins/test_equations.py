"""The kit's plug-ins and the examples compute what their texts say."""

import copy
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import Parameter

from evaluator.communication.nf4 import LEVELS
from evaluator.records.server_steps import AdamStep, MomentumStep
from starter_kit.compression.plugin_codecs import CodecPlugin
from starter_kit.learning.local_training import LocalTraining, make_optimizer
from starter_kit.plugins.codecs import coded_nf4, int8, topk
from starter_kit.plugins.hooks import fedprox
from starter_kit.plugins.server_optimizers import fedadam, fedavgm
from starter_kit.randomness import Stream
from starter_kit.scaffolding.toy import Toy
from starter_kit.settings.configuration import load_settings
from tests.starter_kit.plugins.examples import example, example_file

powersgd, seeds, sign, lion = map(example_file, ("powersgd", "seeds", "sign", "lion"))
GENERATOR = torch.Generator().manual_seed(5)
VECTOR = torch.randn(1000, generator=GENERATOR)
STREAM = Stream(3)


def test_top_k_sends_the_largest_and_adds_what_it_left_out_to_the_next() -> None:
    codec, state = topk.Codec(fraction=0.25), dict[str, Tensor]()
    first, second = torch.tensor([1.0, -4.0, 2.0, 0.5]), torch.tensor([1.5, 0.0, 0.0, 0.0])
    message = codec.encode(first, state)
    assert message == np.uint32(1).tobytes() + np.float32(-4).tobytes()
    assert codec.decode(message, 4).tolist() == [0, -4, 0, 0]
    assert state["error"].tolist() == [1, 0, 2, 0.5]
    assert codec.decode(codec.encode(second, state), 4).tolist() == [2.5, 0, 0, 0]
    assert state["error"].tolist() == [0, 0, 2, 0.5]


def test_signs_have_the_mean_size_of_their_block_and_leave_the_rest_for_the_next() -> None:
    codec, state = sign.Codec(), dict[str, Tensor]()
    first = torch.tensor([1.0, -3.0, 0.0])
    message = codec.encode(first, state)
    assert message == np.float32(4 / 3).tobytes() + bytes([0b01000000])
    arrived = codec.decode(message, 3)
    assert arrived.tolist() == pytest.approx([4 / 3, -4 / 3, 4 / 3])
    assert torch.equal(state["error"], first - arrived)
    again = codec.decode(codec.encode(torch.zeros(3), state), 3)
    assert torch.allclose(arrived + again + state["error"], first)


def test_eight_bits_are_off_by_half_a_level_at_most() -> None:
    codec = int8.Codec()
    message = codec.encode(VECTOR, {})
    assert len(message) == 4 * 4 + 1000
    scales = torch.stack([block.abs().max() / 127 for block in torch.split(VECTOR, 256)]).repeat_interleave(
        256
    )[:1000]
    arrived = codec.decode(message, 1000)
    assert ((arrived - VECTOR).abs() <= scales * 0.5001).all()
    assert codec.encode(arrived, {}) == message
    assert codec.decode_model(codec.encode_model(torch.zeros(9)), 9).tolist() == [0.0] * 9


def test_coded_nf4_has_the_levels_of_nf4_and_scales_of_two_bytes() -> None:
    codec = coded_nf4.Codec()
    message = codec.encode(VECTOR, {})
    # 16 scales, a table of 16 weights and one lane; 4 bits for each number are the most that its code takes.
    assert len(message) <= 2 * 16 + 16 + 4 + 500
    arrived = codec.decode(message, 1000)
    scales = torch.stack([block.abs().max() for block in torch.split(VECTOR, 64)]).repeat_interleave(64)[
        :1000
    ]
    assert ((arrived - VECTOR).abs() <= scales * 1.01 * float(np.diff(LEVELS).max()) / 2).all()
    assert codec.encode(arrived, {}) == message
    largest = torch.full((3,), float(torch.finfo(torch.float32).max))
    assert codec.decode(codec.encode(largest, {}), 3).isfinite().all()


def test_power_sgd_sends_one_power_step_of_a_matrix_and_smaller_tensors_as_they_are() -> None:
    shapes = [torch.Size([12, 10]), torch.Size([5]), torch.Size([2, 2]), torch.Size([6, 2, 5])]
    codec, state = powersgd.Codec(rank=2).with_layout(shapes), dict[str, Tensor]()
    update = VECTOR[: 120 + 5 + 4 + 60 + 3]
    message = codec.encode(update, state)
    assert len(message) == 4 * (2 * (12 + 10) + 5 + 4 + 2 * (6 + 10) + 3)
    arrived = codec.decode(message, len(update))
    assert torch.equal(arrived[120:129], update[120:129])
    assert torch.equal(arrived[-3:], update[-3:])
    numbers = torch.from_numpy(np.frombuffer(message, "<f4").copy())
    left, right = numbers[:24].view(12, 2), numbers[24:44].view(10, 2)
    matrix = update[:120].view(12, 10)
    first = torch.randn(10, 2, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(left.T @ left, torch.eye(2), atol=1e-6)
    # P spans what M·Q spans.
    assert torch.allclose(left @ left.T @ matrix @ first, matrix @ first, atol=1e-5)
    assert torch.allclose(right, matrix.T @ left, atol=1e-6)
    assert torch.allclose(arrived[:120].view(12, 10), left @ right.T, atol=1e-6)
    assert torch.equal(state["error"], update - arrived)


def test_power_sgd_begins_with_its_last_factors_and_so_finds_the_largest_part() -> None:
    codec, state = powersgd.Codec(rank=1).with_layout([torch.Size([12, 10])]), dict[str, Tensor]()
    matrix = VECTOR[:120].view(12, 10)
    best = torch.linalg.svdvals(matrix)
    for _ in range(200):
        state.pop("error", None)
        arrived = codec.decode(codec.encode(matrix.reshape(-1), state), 120)
    assert float((arrived.view(12, 10) - matrix).norm()) == pytest.approx(float(best[1:].norm()), rel=1e-4)
    # Nothing stays of a round without an update, not even a Q that finds nothing any more.
    state.pop("error")
    assert not codec.decode(codec.encode(torch.zeros(120), state), 120).any()
    assert codec.decode(codec.encode(matrix.reshape(-1), state), 120).any()


def test_a_seed_gives_directions_back_and_what_they_lack_is_left_for_the_next() -> None:
    codec, state = seeds.Codec(directions=64), dict[str, Tensor]()
    message = codec.encode(VECTOR, state)
    assert len(message) == 8 + 4 * 64
    directions = seeds.directions_of(message[:8], 64)
    assert torch.allclose(directions @ directions.T, torch.eye(64), atol=1e-6)
    coefficients = torch.from_numpy(np.frombuffer(message, "<f4", offset=8).copy())
    assert torch.allclose(coefficients, directions[:, :1000] @ VECTOR, atol=1e-5)
    arrived = codec.decode(message, 1000)
    assert torch.allclose(arrived, coefficients @ directions[:, :1000], atol=1e-5)
    assert torch.equal(state["error"], VECTOR - arrived)
    # 15 of 16 parts of its square are left on average; a vector along the directions arrives whole.
    assert float((state["error"].norm() / VECTOR.norm()).square()) == pytest.approx(1 - 64 / 1024, abs=0.03)
    total = arrived.clone()
    for _ in range(40):
        later = codec.encode(torch.zeros(1000), state)
        assert later[:8] != message[:8]
        total += codec.decode(later, 1000)
    assert torch.allclose(total + state["error"], VECTOR, atol=1e-4)
    assert float(state["error"].norm()) < 0.4 * float(VECTOR.norm())


@pytest.mark.parametrize(
    "codec",
    [topk.Codec(fraction=0.1), sign.Codec(), powersgd.Codec(), seeds.Codec()],
    ids=str,
)
def test_a_model_arrives_exactly_and_the_first_download_takes_no_bytes(codec: CodecPlugin) -> None:
    assert codec.encode_model(torch.zeros(1000)) == b""
    sparse = VECTOR.where(VECTOR > 2, torch.zeros(1000))
    for change in (torch.zeros(1000), sparse, VECTOR):
        assert torch.equal(codec.decode_model(codec.encode_model(change), 1000), change)
    if isinstance(codec, topk.Codec):
        assert len(codec.encode_model(sparse)) == 1 + 8 * int((VECTOR > 2).sum())


@pytest.mark.parametrize(
    "codec",
    [topk.Codec(fraction=0.5), sign.Codec(), int8.Codec(), powersgd.Codec(), seeds.Codec(directions=2)],
    ids=str,
)
@pytest.mark.parametrize("message", [b"", b"123", b"\xff" * 12, b"\xff" * 16, b"\xff" * 64])
def test_what_no_encoder_writes_is_rejected(codec: CodecPlugin, message: bytes) -> None:
    with pytest.raises(ValueError, match=r"bytes|places|scale|finite"):
        codec.decode(message, 4 if len(message) < 64 else 60)


@pytest.mark.parametrize(
    ("codec", "message"),
    [
        (coded_nf4.Codec(), b"1"),
        (coded_nf4.Codec(), b"\xff" * 40),
    ],
    ids=str,
)
def test_a_coded_message_that_no_encoder_writes_is_rejected(codec: CodecPlugin, message: bytes) -> None:
    with pytest.raises(ValueError, match=r"scale|symbol"):
        codec.decode(message, 4)


def test_a_number_that_is_not_finite_is_no_value_of_a_sparse_message() -> None:
    message = np.array([0, 2], "<u4").tobytes() + np.array([1.0, np.nan], "<f4").tobytes()
    with pytest.raises(ValueError, match="finite"):
        topk.Codec(fraction=0.5).decode(message, 4)


def test_fedprox_is_the_loss_with_a_quadratic_pull_and_nothing_without_one() -> None:
    toy = Toy()
    local = LocalTraining(learning_rate=0.05, optimizer="sgd", batch_size=2, epochs=2)
    start, examples = torch.ones(8), range(8)
    plain = toy.learner.train(start, examples, local, STREAM)
    none = toy.learner.train(start, examples, local.model_copy(update={"hook": fedprox.Hook(mu=0)}), STREAM)
    pulled = toy.learner.train(start, examples, local.model_copy(update={"hook": fedprox.Hook(mu=3)}), STREAM)
    assert torch.equal(plain.change, none.change)
    assert plain.loss == none.loss
    by_loss = Toy()
    loss, weight = by_loss.loss, by_loss.model.weight
    by_loss.learner._loss = lambda batch: loss(batch) + 3 / 2 * (weight - 1).square().sum()
    expected = by_loss.learner.train(start, examples, local, STREAM).change
    assert torch.allclose(pulled.change, expected, atol=1e-6)
    assert not torch.allclose(pulled.change, plain.change, atol=1e-3)


def test_lion_steps_along_the_sign_of_its_momentum() -> None:
    optimizer = lion.Optimizer(beta_1=0.5, beta_2=0.75, decay=0.1)
    parameter = Parameter(torch.tensor([1.0, -1.0]))
    steps = make_optimizer([parameter], LocalTraining(learning_rate=0.2, optimizer=optimizer))
    weight, momentum = parameter.detach().clone(), torch.zeros(2)
    for gradient in (torch.tensor([3.0, -1.0]), torch.tensor([-1.0, 0.5])):
        parameter.grad = gradient.clone()
        steps.step()
        weight = weight - 0.2 * ((0.5 * momentum + 0.5 * gradient).sign() + 0.1 * weight)
        momentum = 0.75 * momentum + 0.25 * gradient
        assert torch.allclose(parameter.detach(), weight)


def test_server_optimizers_move_the_model_by_the_mean_as_they_say_and_record() -> None:
    mean, other, state, w = (
        torch.tensor([0.1, -0.2]),
        torch.tensor([0.3, 0.0]),
        dict[str, Tensor](),
        torch.ones(2),
    )
    momentum = fedavgm.ServerOptimizer(learning_rate=2, momentum=0.5)
    w = momentum.step(w, mean, state)
    assert torch.allclose(w, 1 + 2 * mean)
    assert torch.allclose(momentum.step(w, other, state), w + 2 * (0.5 * mean + other))
    assert momentum.recorded() == MomentumStep(learning_rate=2, momentum=0.5)
    adam, state = fedadam.ServerOptimizer(learning_rate=0.1, beta_1=0.5, beta_2=0.75, tau=0.01), {}
    w = adam.step(torch.zeros(2), mean, state)
    assert torch.allclose(w, 0.1 * 0.5 * mean / (0.25**0.5 * mean.abs() + 0.01))
    m, s = 0.25 * mean + 0.5 * other, 0.1875 * mean**2 + 0.25 * other**2
    assert torch.allclose(adam.step(w, other, state), w + 0.1 * m / (s.sqrt() + 0.01))
    assert adam.recorded() == AdamStep(
        learning_rate=0.1, beta_1=0.5, beta_2=0.75, epsilon=0.01, bias_correction=False
    )


def test_fedavg_with_a_server_optimizer_takes_its_step() -> None:
    changes = ["local.learning_rate=0.02", "server_optimizer={type: fedavgm, momentum: 0.5}"]
    rounds = Toy().run_settings(load_settings("fedavg", changes), 3)
    velocity = torch.zeros(8)
    for before, after in pairwise([None, *rounds]):
        velocity = 0.5 * velocity + after.aggregate.total / 2
        start = Toy().weights if before is None else before.weights
        assert torch.allclose(after.weights, start + velocity)


def test_a_run_with_error_feedback_sends_what_its_messages_take_and_learns() -> None:
    toy = Toy()
    settings = load_settings("plugins/topk", ["codec.fraction=0.25", "local.learning_rate=0.02"])
    *_, last = toy.run_settings(settings, 40)
    assert {message.size_bytes for message in last.messages if message.sender >= 0} == {2 * 8}
    assert toy.distance(last.weights) < 0.3 * toy.distance(toy.weights)
    without = load_settings("plugins/topk", ["codec={type: topk, fraction: 0.25, error_feedback: false}"])
    assert copy.deepcopy(without).codec == without.codec


@pytest.mark.parametrize("codec", ["{type: powersgd.py, rank: 1}", "{type: seeds.py, directions: 512}"])
def test_a_codec_with_a_method_that_sends_more_beside_its_updates_learns(codec: str) -> None:
    toy = Toy()
    changes = [f"codec={codec}", "local.learning_rate=0.02"]
    *_, last = toy.run_settings(load_settings(example("scaffold"), changes), 40)
    assert toy.distance(last.weights) < 0.3 * toy.distance(toy.weights)
