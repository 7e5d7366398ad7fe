"""The hash chain of a training record: every line's `h` depends on all lines up to it.

h₀ = SHA-256(schema); hₜ = SHA-256(hₜ₋₁ ‖ line t), where hₜ₋₁ is 32 bytes and a line is its canonical form without
`h` and `signature`. Whoever knows hₜ can detect whether any of the first t lines was changed, dropped, moved or added.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from evaluator.records.canonical_lines import canonical


class Chain:
    """The chain up to the last line so far.

    Attributes:
        head: The `h` of that line, in hexadecimal.
    """

    def __init__(self, schema: str) -> None:
        self.head = hashlib.sha256(schema.encode()).hexdigest()

    def append(self, values: Mapping[str, Any]) -> str:
        """Append a line with these values, and return the new head."""
        self.head = hashlib.sha256(bytes.fromhex(self.head) + canonical(values)).hexdigest()
        return self.head
