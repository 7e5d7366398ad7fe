"""The expected numbers are worked out here by other formulas than the optimizer's, with numpy and scipy."""

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from pydantic import ValidationError
from scipy.linalg import fractional_matrix_power
from torch.nn import Parameter

from starter_kit.learning.local_training import ShampooSettings
from starter_kit.learning.shampoo import Shampoo

FREE = math.inf  # an element clip that clips nothing


def parameter(*shape: int) -> Parameter:
    return Parameter(torch.zeros(shape, dtype=torch.float64))


def take(optimizer: torch.optim.Optimizer, weight: Parameter, gradient: torch.Tensor) -> None:
    weight.grad = gradient.to(weight.dtype).reshape(weight.shape).clone()
    optimizer.step()


def double(values: object) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def gradients(count: int, *shape: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(count)]


def expected_weights(
    sequence: Sequence[torch.Tensor], lr: float, statistics_at: set[int], roots_at: set[int], ridge: float
) -> NDArray[np.float64]:
    """The weights after steps along `sequence` of matrices from zero, step numbers from 1, by scipy's powers."""
    rows, columns = sequence[0].shape
    left, right, left_root, right_root = np.eye(rows), np.eye(columns), np.eye(rows), np.eye(columns)
    weights = np.zeros((rows, columns))
    for step, gradient in enumerate((matrix.numpy() for matrix in sequence), start=1):
        if step in statistics_at:
            left = left + np.einsum("ik,jk->ij", gradient, gradient)
            right = right + np.einsum("ki,kj->ij", gradient, gradient)
        if step in roots_at:
            left_root = fractional_matrix_power(left + ridge * np.eye(rows), -0.25)
            right_root = fractional_matrix_power(right + ridge * np.eye(columns), -0.25)
        weights = weights - lr * np.einsum("ij,jk,kl->il", left_root, gradient, right_root)
    return weights


def test_one_step_worked_out_by_hand() -> None:
    weight = parameter(2, 2)
    shampoo = Shampoo([weight], 0.1, FREE, statistics_every=1, roots_every=1, ridge=0.0)
    # I + G Gᵀ is diag(16, 81), its inverse fourth root diag(1/2, 1/3), on either side.
    take(shampoo, weight, double([[math.sqrt(15), 0.0], [0.0, -math.sqrt(80)]]))
    np.testing.assert_allclose(
        weight.detach(), [[-0.1 * math.sqrt(15) / 4, 0], [0, 0.1 * math.sqrt(80) / 9]], rtol=1e-12
    )


def test_rows_are_preconditioned_on_the_left_and_columns_on_the_right() -> None:
    weight = parameter(2, 2)
    shampoo = Shampoo([weight], 1.0, FREE, statistics_every=1, roots_every=1, ridge=0.0)
    # G = [[0, √15], [0, 0]]: L = diag(16, 1), R = diag(1, 16); the step is √15 / 4 there and 0 elsewhere.
    take(shampoo, weight, double([[0.0, math.sqrt(15)], [0.0, 0.0]]))
    np.testing.assert_allclose(weight.detach(), [[0.0, -math.sqrt(15) / 4], [0.0, 0.0]], rtol=1e-12)
    # The same G turned: L = diag(16, 16), R = diag(16, 16).
    take(shampoo, weight, double([[0.0, 0.0], [math.sqrt(15), 0.0]]))
    np.testing.assert_allclose(
        weight.detach(), [[0, -math.sqrt(15) / 4], [-math.sqrt(15) / 4, 0]], rtol=1e-12
    )


@pytest.mark.parametrize("ridge", [1e-4, 0.5])
def test_one_step_is_the_published_formula(ridge: float) -> None:
    weight = parameter(2, 2)
    sequence = gradients(1, 2, 2)
    take(Shampoo([weight], 0.3, FREE, 1, 1, ridge), weight, sequence[0])
    np.testing.assert_allclose(weight.detach(), expected_weights(sequence, 0.3, {1}, {1}, ridge), rtol=1e-10)


def test_eleven_steps_gather_at_multiples_of_five_and_take_roots_at_the_tenth() -> None:
    weight = parameter(2, 2)
    shampoo = Shampoo([weight], 0.3, FREE, statistics_every=5, roots_every=10)
    sequence = gradients(11, 2, 2)
    for gradient in sequence:
        take(shampoo, weight, gradient)
    expected = expected_weights(sequence, 0.3, {5, 10}, {10}, 1e-4)
    np.testing.assert_allclose(weight.detach(), expected, rtol=1e-10)


def test_by_default_statistics_are_every_tenth_and_roots_every_hundredth_step() -> None:
    weight = parameter(3, 2)
    shampoo = Shampoo([weight], 0.3, FREE)
    sequence = gradients(215, 3, 2)
    for gradient in sequence:
        take(shampoo, weight, gradient)
    tenths = set(range(10, 216, 10))
    expected = expected_weights(sequence, 0.3, tenths, {100, 200}, 1e-4)
    np.testing.assert_allclose(weight.detach(), expected, rtol=1e-9)


def test_before_the_first_roots_a_step_is_clipped_sgd() -> None:
    weight = parameter(2, 2)
    shampoo = Shampoo([weight], 0.1, 0.5)
    for _ in range(99):
        take(shampoo, weight, double([[3.0, 0.2], [-0.4, -7.0]]))
    np.testing.assert_allclose(weight.detach(), 99 * 0.1 * np.array([[-0.5, -0.2], [0.4, 0.5]]), rtol=1e-10)


def test_elements_are_clipped_after_preconditioning() -> None:
    weight = parameter(2, 2)
    shampoo = Shampoo([weight], 2.0, 0.7, statistics_every=1, roots_every=1, ridge=0.0)
    # Preconditioned: √15/4 = 0.968 and -√80/9 = -0.994; a clip before it would give 0.7/1.22.
    take(shampoo, weight, double([[math.sqrt(15), 0.0], [0.0, -math.sqrt(80)]]))
    np.testing.assert_allclose(weight.detach(), [[-1.4, 0], [0, 1.4]], rtol=1e-12)


def test_a_vector_is_a_matrix_of_one_column() -> None:
    vector, column = parameter(3), parameter(3, 1)
    for weight in (vector, column):
        shampoo = Shampoo([weight], 0.1, FREE, 1, 1)
        for gradient in gradients(4, 3, 1):
            take(shampoo, weight, gradient)
    assert torch.equal(vector, column.reshape(3))
    expected = expected_weights(gradients(4, 3, 1), 0.1, {1, 2, 3, 4}, {1, 2, 3, 4}, 1e-4)
    np.testing.assert_allclose(column.detach(), expected, rtol=1e-10)


def test_a_tensor_of_more_dimensions_is_the_first_by_all_others() -> None:
    tensor, matrix = parameter(3, 2, 2), parameter(3, 4)
    for weight in (tensor, matrix):
        shampoo = Shampoo([weight], 0.1, FREE, 1, 1)
        for gradient in gradients(4, 3, 4):
            take(shampoo, weight, gradient)
    assert torch.equal(tensor.reshape(3, 4), matrix)


def test_a_single_number_can_be_trained() -> None:
    weight = parameter()
    take(Shampoo([weight], 1.0, FREE, 1, 1, ridge=0.0), weight, double(math.sqrt(15)))
    assert float(weight.detach()) == pytest.approx(-math.sqrt(15) / 4)


def test_a_side_above_the_largest_dimension_keeps_its_identity() -> None:
    weight = parameter(3, 2)
    shampoo = Shampoo([weight], 1.0, FREE, 1, 1, max_dimension=2)
    (gradient,) = gradients(1, 3, 2)
    take(shampoo, weight, gradient)
    right = np.eye(2) * (1 + 1e-4) + gradient.numpy().T @ gradient.numpy()
    np.testing.assert_allclose(
        weight.detach(), -gradient.numpy() @ fractional_matrix_power(right, -0.25), rtol=1e-10
    )
    assert set(shampoo.export_state()) == {"0.step", "0.right", "0.right_root"}


def test_each_layer_has_its_own_preconditioners() -> None:
    first, second, alone = parameter(2, 2), parameter(3, 2), parameter(3, 2)
    both, single = Shampoo([first, second], 0.1, FREE, 1, 1), Shampoo([alone], 0.1, FREE, 1, 1)
    for ours, theirs in zip(gradients(5, 3, 2), gradients(5, 2, 2), strict=True):
        first.grad = theirs
        take(both, second, ours)
        take(single, alone, ours)
    assert torch.equal(second, alone)


def test_memory_is_quadratic_in_either_side_and_not_in_their_product() -> None:
    state = Shampoo([Parameter(torch.zeros(30, 50))], 0.1, FREE).export_state()
    assert sum(tensor.numel() for tensor in state.values()) == 2 * (30**2 + 50**2) + 1


def test_a_parameter_without_a_gradient_is_left_alone() -> None:
    trained, frozen = parameter(2), parameter(2)
    shampoo = Shampoo([trained, frozen], 0.1, FREE, 1, 1)
    take(shampoo, trained, torch.ones(2))
    assert not frozen.any()
    assert (int(shampoo.export_state()["0.step"]), int(shampoo.export_state()["1.step"])) == (1, 0)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e200])
def test_statistics_survive_a_gradient_that_overflows(bad: float) -> None:
    weight = parameter(2, 2)
    shampoo = Shampoo([weight], 0.1, 0.2, 1, 1)
    take(shampoo, weight, torch.ones(2, 2))
    before = shampoo.export_state()
    take(shampoo, weight, torch.full((2, 2), bad, dtype=torch.float64))
    after = shampoo.export_state()
    assert all(torch.equal(after[name], before[name]) for name in before if name != "0.step")


def test_large_gradients_in_one_direction_do_not_spoil_the_others() -> None:
    # In float32 the sums' smallest eigenvalues drown in the rounding of the largest.
    weight = Parameter(torch.zeros(20, 20))
    shampoo = Shampoo([weight], 1.0, FREE, 1, 1)
    direction = torch.randn(20, 20, generator=torch.Generator().manual_seed(3))[:, :1]
    for _ in range(5):
        take(shampoo, weight, 1e6 * direction @ direction.T)
    roots = shampoo.export_state()["0.left_root"]
    eigenvalues = torch.linalg.eigvalsh(roots.double())
    assert eigenvalues.min() > 0
    # It is 1 but for rounding.
    assert eigenvalues.max() <= 1 + 1e-5


def layers() -> list[Parameter]:
    generator = torch.Generator().manual_seed(8)
    return [Parameter(torch.randn(shape, generator=generator)) for shape in ((4, 3), (3,), (2, 2, 3), ())]


def train(shampoo: Shampoo, parameters: list[Parameter], steps: range) -> None:
    for step in steps:
        generator = torch.Generator().manual_seed(step)
        for weight in parameters:
            weight.grad = torch.randn(weight.shape, generator=generator)
        shampoo.step()


def exported(shampoo: Shampoo) -> Shampoo:
    fresh = Shampoo(layers(), 0.05, 0.3, statistics_every=3, roots_every=7)
    fresh.restore_state(shampoo.export_state())
    return fresh


def checkpointed(shampoo: Shampoo) -> Shampoo:
    fresh = Shampoo(layers(), 0.05, 0.3, statistics_every=3, roots_every=7)
    fresh.load_state_dict(shampoo.state_dict())
    return fresh


@pytest.mark.parametrize("carried_over", [exported, checkpointed])
@pytest.mark.parametrize("pause", [0, 5, 12, 14, 20])
def test_a_restored_optimizer_continues_to_the_bit(
    carried_over: Callable[[Shampoo], Shampoo], pause: int
) -> None:
    straight, paused = layers(), layers()
    train(Shampoo(straight, 0.05, 0.3, statistics_every=3, roots_every=7), straight, range(30))
    before = Shampoo(paused, 0.05, 0.3, statistics_every=3, roots_every=7)
    train(before, paused, range(pause))
    after = carried_over(before)
    resumed = after.param_groups[0]["params"]
    with torch.no_grad():
        for to, of in zip(resumed, paused, strict=True):
            to.copy_(of)
    train(after, resumed, range(pause, 30))
    assert all(torch.equal(one, other) for one, other in zip(straight, resumed, strict=True))


def test_an_optimizer_that_forgot_its_state_continues_differently() -> None:
    straight, paused = layers(), layers()
    train(Shampoo(straight, 0.05, 0.3, statistics_every=3, roots_every=7), straight, range(30))
    for half in (range(20), range(20, 30)):
        train(Shampoo(paused, 0.05, 0.3, statistics_every=3, roots_every=7), paused, half)
    assert not torch.equal(straight[0], paused[0])


def test_an_exported_state_does_not_change_with_further_steps() -> None:
    parameters = layers()
    shampoo = Shampoo(parameters, 0.05, 0.3, 1, 1)
    train(shampoo, parameters, range(1))
    state = shampoo.export_state()
    kept = {name: tensor.clone() for name, tensor in state.items()}
    train(shampoo, parameters, range(1, 3))
    assert all(torch.equal(state[name], kept[name]) for name in kept)
    assert int(state["0.step"]) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"0.left": torch.eye(3)},
        {"9.left": torch.eye(2)},
        {"0.step": torch.zeros(2)},
    ],
)
def test_the_state_of_other_parameters_is_rejected_and_nothing_changed(
    change: dict[str, torch.Tensor],
) -> None:
    shampoo = Shampoo([parameter(2, 2)], 0.1, FREE)
    state = shampoo.export_state() | {"0.right": 5 * torch.eye(2)} | change
    with pytest.raises(ValueError, match=next(iter(change))):
        shampoo.restore_state(state)
    assert torch.equal(shampoo.export_state()["0.right"], torch.eye(2, dtype=torch.float64))


def test_a_state_with_something_missing_is_rejected() -> None:
    shampoo = Shampoo([parameter(2, 2)], 0.1, FREE)
    state = shampoo.export_state()
    del state["0.right_root"]
    with pytest.raises(ValueError, match=r"0\.right_root"):
        shampoo.restore_state(state)


def loss_on_a_stretched_quadratic(make: Callable[[list[Parameter]], torch.optim.Optimizer]) -> float:
    """Loss after 300 steps on ½‖A(W - W*)B‖² (8, 6), with curvatures from 0.001 to 1000 along turned axes."""
    generator = torch.Generator().manual_seed(1)
    turn_left, _ = torch.linalg.qr(torch.randn(8, 8, generator=generator, dtype=torch.float64))
    turn_right, _ = torch.linalg.qr(torch.randn(6, 6, generator=generator, dtype=torch.float64))
    stretch_left = (turn_left * torch.logspace(1, -1, 8, dtype=torch.float64)) @ turn_left.T
    stretch_right = (turn_right * torch.logspace(0.5, -0.5, 6, dtype=torch.float64)) @ turn_right.T
    target = torch.randn(8, 6, generator=generator, dtype=torch.float64)
    weight = parameter(8, 6)
    optimizer = make([weight])
    for _ in range(300):
        optimizer.zero_grad()
        loss = 0.5 * (stretch_left @ (weight - target) @ stretch_right).square().sum()
        torch.autograd.backward(loss)
        optimizer.step()
    return float(loss.detach())


def test_a_stretched_quadratic_is_solved_faster_than_by_sgd() -> None:
    shampoo = loss_on_a_stretched_quadratic(lambda p: Shampoo(p, 0.3, 0.2, 10, 20))
    clipped_sgd = loss_on_a_stretched_quadratic(lambda p: Shampoo(p, 0.3, 0.2, 1000, 1000))
    sgd = loss_on_a_stretched_quadratic(lambda p: torch.optim.SGD(p, 0.3))
    best_sgd = min(
        loss_on_a_stretched_quadratic(partial(torch.optim.SGD, lr=lr)) for lr in (5e-4, 1e-3, 1.5e-3)
    )
    assert shampoo < 0.02 * clipped_sgd
    assert not math.isfinite(sgd)
    assert shampoo < 0.2 * best_sgd


def test_parameters_in_half_precision_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"not torch\.bfloat16"):
        Shampoo([Parameter(torch.zeros(2, dtype=torch.bfloat16))], lr=0.1, element_clip=0.2)


@pytest.mark.parametrize(
    "settings",
    [
        {"element_clip": 0.0},
        {"statistics_every": 0},
        {"roots_every": 0},
        {"ridge": -1e-4},
        {"ridge": math.nan},
    ],
)
def test_settings_out_of_range_are_rejected(settings: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        ShampooSettings.model_validate(settings)
