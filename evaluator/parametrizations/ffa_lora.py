"""FFA-LoRA (Sun et al. 2024, arXiv:2403.12313): LoRA whose A keeps its first values, so that only B is trained.

The change of a weight is linear in B: the mean of clients' updates is the update of the mean, and noise on B isn't
multiplied by noise on A. A is never sent, as every party computes it.
"""

from dataclasses import replace

from evaluator.parametrizations.lora import LORA, A, B

FFA_LORA = replace(LORA, name="ffa-lora", parts=(replace(A, is_trained=False), B))
