"""Gradients cut coordinate by coordinate, with more room for the first step of a local training.

This is a working hook to start from. Replace the line above with what yours is and where it was published.

With the gradient g of step t, from 1, and the bound B, the optimizer gets each coordinate of g cut to [−B, B], and for
t = 1 to [−2B, 2B].

When you change a step, change the text here and its test in test_my_plugin.py.
"""

from typing import ClassVar

from pydantic import Field

from starter_kit.learning.plugins import GradientStep, HookPlugin


class Hook(HookPlugin):
    """The hook. Its fields are its settings, in a config: local.hook: {type: my_plugin.py, bound: 2.0}

    Attributes:
        bound: B.
    """

    # True if `step.state` gets something for the client's later rounds, as control variates are. A private run rejects
    # such a hook: what one provider's training left there would reach others.
    keeps_state: ClassVar[bool] = False

    bound: float = Field(default=1.0, gt=0)

    def correct(self, step: GradientStep) -> None:
        # Gradients are changed in place, on the model's device. `step.start` has the values before the first step of
        # this training: `parameter - start` is how far each parameter has come.
        bound = 2 * self.bound if step.number == 1 else self.bound
        for parameter in step.parameters:
            if parameter.grad is not None:
                parameter.grad.clamp_(-bound, bound)
