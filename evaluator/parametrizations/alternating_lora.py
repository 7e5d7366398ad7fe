"""Alternating LoRA (as in RoLoRA, Chen et al. 2024, arXiv:2409.02346): B is trained in odd rounds and A in even ones.

B comes first, as A has no gradient while B is zero. In each round the change is linear in what is trained. Of a noised
sum, the server uses only the coordinates whose turn it is; the others keep their values to the bit.
"""

from dataclasses import replace

from evaluator.parametrizations.lora import LORA

ALTERNATING_LORA = replace(
    LORA,
    name="alternating-lora",
    turns=("B", "A"),
)
