"""LoRA (Hu et al. 2021, arXiv:2106.09685): W + (alpha/rank)·B·A, with A (rank, in) and B (out, rank) trained.

A begins with values that follow from the start of the run, and B at zero.
"""

from evaluator.parametrizations.first_values import uniform, zeros
from evaluator.parametrizations.parametrization import Parametrization, Part

A = Part("A", ("rank", "in"), uniform)
B = Part("B", ("out", "rank"), zeros)

LORA = Parametrization(
    name="lora",
    parts=(A, B),
    factors=lambda parts: (parts["A"], parts["B"]),
    scale=lambda alpha, rank: alpha / rank,
)
