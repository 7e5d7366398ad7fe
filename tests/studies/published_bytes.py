"""The published totals of communication on PFL-DocVQA: as printed, in bytes, and as the configs of the kit send them.

Sources: the privacy-aware DocVQA paper and the competition's paper. All messages of a run have one size, so a total is
their number times that size. What the baselines print as GB are GiB; the rest are 10⁶ bytes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.studies.markdown import table_row

GIB = 2**30
# What the vectors of the full configs have, at the precision in which they are sent.
LANGUAGE_MODEL = 225_659_136
ADAPTERS = 3_419_136
FLOAT_BITS, NF4_BITS = 32, 4.5
# Published code sends the language model's embedding once for each of the four places that share it.
TIED_LANGUAGE_MODEL = LANGUAGE_MODEL + 3 * 32_128 * 768


@dataclass(frozen=True)
class Total:
    """A published total.

    Attributes:
        printed: The total with its unit, as printed.
        unit: What that unit is, in bytes.
        config: The config of the kit that trains the same.
        messages: How many messages the run exchanged, of which `first_downloads` went out in the first round.
        published_parameters: The parameters of a published message, as `parameters` are those of ours.
        bits: How many bits each takes.
    """

    source: str
    printed: str
    unit: int
    config: str
    messages: int
    first_downloads: int
    published_parameters: int
    parameters: int
    bits: float = FLOAT_BITS

    @property
    def published_bytes(self) -> int:
        """The published total in bytes."""
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


TOTALS = (
    Total("baseline", "44.65 GB", GIB, "full/fedavg", 40, 2, TIED_LANGUAGE_MODEL, LANGUAGE_MODEL),
    Total("LoRA", "380 MB", 10**6, "full/lora", 28, 2, ADAPTERS, ADAPTERS),
    Total("LoRA, tuned", "55 MB", 10**6, "full/lora-tuned", 4, 1, ADAPTERS, ADAPTERS),
    Total("LoRA, NF4", "7.7 MB", 10**6, "full/lora-nf4", 4, 1, ADAPTERS, ADAPTERS, NF4_BITS),
)


def rows() -> Iterator[str]:
    """Yield the rows of the table."""
    for total in TOTALS:
        size = total.message_bytes(total.published_parameters)
        yield table_row(
            total.source,
            total.printed,
            f"{total.messages} messages of {size:,} bytes",
            f"{total.published_bytes:,}",
            "GiB" if total.unit == GIB else "10⁶ bytes",
            f"`{total.config}`",
            f"{total.counted_bytes:,}",
            f"{total.free_bytes:,}",
            f"{total.counted_bytes / total.published_bytes:.3f}",
        )
