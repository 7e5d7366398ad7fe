"""Writing a training record while training runs, line by line.

A run that is interrupted leaves the lines written so far, whose hashes still prove their order.
"""

from typing import Any, BinaryIO

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evaluator.records.canonical_lines import canonical, values_of
from evaluator.records.chain import Chain
from evaluator.records.lines import SCHEMA, EndLine, ResumeLine, RoundLine, RunLine
from evaluator.records.signing import sign


class RecordWriter:
    """Writes one record.

    Args:
        file: Open for writing bytes, empty; the caller closes it.
        run: The first line, written at once.
    """

    def __init__(self, file: BinaryIO, run: RunLine) -> None:
        self._file = file
        self._chain = Chain(SCHEMA)
        self._write(values_of(run))

    @property
    def own_challenge(self) -> str:
        """The hash of the chain so far; after the last round, an annex for a dry run is drawn from it."""
        return self._chain.head

    def round(self, line: RoundLine) -> None:
        """Write the line of a round."""
        self._write(values_of(line))

    def resume(self, line: ResumeLine) -> None:
        """Write the line that says where the run was resumed."""
        self._write(values_of(line))

    def end(self, line: EndLine, key: Ed25519PrivateKey) -> None:
        """Write the last line, signed with `key`, whose public half the line names."""
        self._write(values_of(line), key)

    def _write(self, values: dict[str, Any], key: Ed25519PrivateKey | None = None) -> None:
        head = self._chain.append(values)
        seal = {"h": head, "signature": sign(key, head)} if key else {"h": head}
        self._file.write(canonical(values | seal) + b"\n")
