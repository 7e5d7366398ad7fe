"""Gradients clamped coordinate by coordinate, with a larger bound for the first step of a local training.

This is a working hook to start from. Replace the line above with the name and the source of your hook.

Let g be the gradient of step t, counted from 1, and B the bound. The optimizer gets each coordinate of g clamped to
[−B, B], or to [−2B, 2B] if t = 1.

When you change a step, change the description here and its test in test_my_plugin.py.
"""

from typing import ClassVar

from pydantic import Field

from starter_kit.learning.plugins import GradientStep, HookPlugin


class Hook(HookPlugin):
    """The hook. Its fields are its settings, in a config: local.hook: {type: my_plugin.py, bound: 2.0}

    Attributes:
        bound: B.
    """

    # True if the hook stores something in `step.state` for the client's later rounds, such as control variates. A
    # private run rejects such a hook, because data of one provider could reach others through this state.
    keeps_state: ClassVar[bool] = False

    bound: float = Field(default=1.0, gt=0)

    def correct(self, step: GradientStep) -> None:
        # Change gradients in place, on the model's device. `step.start` has the values before the first step of this
        # training, so `parameter - start` is the change of each parameter so far.
        bound = 2 * self.bound if step.number == 1 else self.bound
        for parameter in step.parameters:
            if parameter.grad is not None:
                parameter.grad.clamp_(-bound, bound)
