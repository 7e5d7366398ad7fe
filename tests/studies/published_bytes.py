"""The published totals of communication on PFL-DocVQA: as printed, in bytes, and as the configs of the kit send them.

All messages of a run have one size, so a total is their number times that size. What the baselines print as GB are GiB;
MB are 10⁶ bytes. The size of FedShampoo's message isn't published, so its unit is unknown.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from starter_kit.published import Number, Source, published
from tests.studies.markdown import table_row

EMBEDDING = 32_128 * 768
# What the vectors of the full configs have, at the precision in which they are sent.
LANGUAGE_MODEL = 225_659_136
ADAPTERS = 3_419_136
FLOAT_BITS, NF4_BITS = 32, 4.5
# Published code sends the language model's embedding once for each of the four places that share it.
TIED_LANGUAGE_MODEL = LANGUAGE_MODEL + 3 * EMBEDDING


@dataclass(frozen=True)
class Total:
    """A published total.

    Attributes:
        printed: The total, as printed.
        unit: What its unit is; empty where that is unknown.
        config: The config of the kit that trains the same.
        messages: How many messages the run exchanged, of which `first_downloads` went out in the first round.
        published_parameters: The parameters of a published message, as `parameters` are those of ours; None where they
            are unknown.
        bits: How many bits each takes.
    """

    source: str
    printed: Number
    unit: str
    config: str
    messages: int
    first_downloads: int
    published_parameters: int | None
    parameters: int
    bits: float = FLOAT_BITS

    @property
    def published_bytes(self) -> int | None:
        """The published total in bytes."""
        if self.published_parameters is None:
            return None
        return self.messages * self.message_bytes(self.published_parameters)

    @property
    def counted_bytes(self) -> int:
        """The bytes of our run with its first downloads."""
        return self.messages * self.message_bytes(self.parameters)

    @property
    def free_bytes(self) -> int:
        """The bytes of our run without its first downloads."""
        return (self.messages - self.first_downloads) * self.message_bytes(self.parameters)

    def message_bytes(self, parameters: int) -> int:
        """Return the size of a message with so many parameters."""
        return int(parameters * self.bits / 8)


def _printed(table: str, row: str) -> Number:
    return published().table(Source.COMPETITION, table).number(row, "communication")


TOTALS = (
    Total(
        "baseline",
        _printed("2", "baseline"),
        "GiB",
        "full/fedavg",
        40,
        2,
        TIED_LANGUAGE_MODEL,
        LANGUAGE_MODEL,
    ),
    Total("LoRA", _printed("A2", "LoRA"), "MB", "full/lora", 28, 2, ADAPTERS, ADAPTERS),
    Total("LoRA, tuned", _printed("A2", "Tuned HPs"), "MB", "full/lora-tuned", 4, 1, ADAPTERS, ADAPTERS),
    Total(
        "LoRA, NF4", _printed("A2", "Quantization"), "MB", "full/lora-nf4", 4, 1, ADAPTERS, ADAPTERS, NF4_BITS
    ),
    Total(
        "FedShampoo",
        _printed("2", "FedShampoo"),
        "",
        "full/fedshampoo",
        12,
        2,
        None,
        LANGUAGE_MODEL - EMBEDDING,
    ),
)


def rows() -> Iterator[str]:
    """Yield the rows of the table."""
    for total in TOTALS:
        sent, message = total.published_bytes, total.published_parameters
        size = f" of {total.message_bytes(message):,} bytes" if message else ""
        yield table_row(
            total.source,
            f"{total.printed.value:g} {total.printed.unit}",
            f"{total.messages} messages{size}",
            f"{sent:,}" if sent else "–",
            {"GiB": "GiB", "MB": "10⁶ bytes", "": "unknown"}[total.unit],
            f"`{total.config}`",
            f"{total.counted_bytes:,}",
            f"{total.free_bytes:,}",
            f"{total.counted_bytes / sent:.3f}" if sent else "–",
        )
