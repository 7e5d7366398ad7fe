"""rsLoRA (Kalajdzievski 2023, arXiv:2312.03732): LoRA with the factor alpha/√rank, which keeps large ranks learning."""

import math
from dataclasses import replace

from evaluator.parametrizations.lora import LORA

RS_LORA = replace(
    LORA,
    name="rs-lora",
    scale=lambda alpha, rank: alpha / math.sqrt(rank),
    peft={"use_rslora": True},
)
