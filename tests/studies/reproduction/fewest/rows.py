"""What is trained for the fewest bytes: steps that lead there, and changes of one of them."""

from tests.studies.reproduction.rows import Row

CONFIG = "fewest-bytes"
SIGN = "codec=../../../../docs/examples/plugins/sign.py"


def _row(name: str, title: str, *changes: str) -> Row:
    return Row(f"fewest-{name}", title, CONFIG, changes)


def _targets(*patterns: str) -> str:
    return f"lora.targets=[{', '.join(f'language_backbone.{pattern}' for pattern in patterns)}]"


TWO_ROUNDS = ("rounds=2", "local.epochs=8")
RANK_6 = ("lora.rank=6", "lora.alpha=12")

REFERENCE = _row("values", "adapters of the values only, of rank 4", *TWO_ROUNDS)

# Each keeps what the rows before it have changed of LoRA with NF4 of the reproduction.
LADDER = [
    _row(
        "one-client",
        "1 client in each of 2 rounds, for 8 passes",
        *TWO_ROUNDS,
        _targets("*.q", "*.v"),
        *RANK_6,
    ),
    _row(
        "encoder",
        "adapters in the encoder only",
        *TWO_ROUNDS,
        _targets("encoder.*.q", "encoder.*.v"),
        *RANK_6,
    ),
    REFERENCE,
]

# Each is the last step with one change.
CANDIDATES = [
    _row("coded-nf4", "codec: entropy-coded NF4", *TWO_ROUNDS, "codec=coded-nf4"),
    _row("reference", "rounds: 1 of 16 passes"),
]
CHANGES = [
    _row("rank-2", "rank: 2", *TWO_ROUNDS, "lora.rank=2", "lora.alpha=4"),
    _row("first-block", "targets: the first block only", *TWO_ROUNDS, _targets("encoder.block.0.*.v")),
    _row("four-rounds", "rounds: 4 of 4 passes", "rounds=4", "local.epochs=4"),
    _row("sign", "codec: one bit for each number", *TWO_ROUNDS, SIGN),
]
