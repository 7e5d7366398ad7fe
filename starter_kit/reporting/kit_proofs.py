"""The proofs of the kit's own methods, which come with the kit: what they state, and the code that they cover."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.settings.files import parse

# An installed package has them beside its code; in a checkout, they are among the documents.
INSTALLED = Path(__file__).parents[1] / "proofs"
CHECKOUT = Path(__file__).parents[2] / "docs" / "proofs"
FRONT_MATTER = re.compile(r"---\n(.*?\n)---\n", re.DOTALL)


@dataclass(frozen=True)
class KitProof:
    """The proof of one of the kit's methods.

    Attributes:
        commit: The commit at which its author compared it with the code.
        covers: The files that it is about, by their paths from the folder that has `starter_kit`, each with the
            SHA-256 of what it executed then.
        text: The proof in Markdown, without front matter.
    """

    method: str
    commit: str
    covers: Mapping[str, str]
    text: str


def kit_proof(method: str) -> KitProof | None:
    """Return the proof of the kit's method of this name; None if it has none.

    Raises:
        ProblemError: (`E_ARTIFACT_MISSING`) The kit was installed without its proofs.
    """
    folder = INSTALLED if INSTALLED.is_dir() else CHECKOUT
    if not folder.is_dir():
        raise ProblemError.of(
            ErrorCode.ARTIFACT_MISSING,
            message="The starter kit was installed without its proofs.",
            where=str(INSTALLED),
            expected="the proofs of the kit's methods",
            found="no such folder",
            next_step="Install the kit again, from the wheel or the source that the site's data page names.",
        )
    file = folder / f"{method}.md"
    if not file.is_file():
        return None
    text = file.read_text(encoding="utf-8")
    found = FRONT_MATTER.match(text)
    front = parse(found[1]) if found else {}
    return KitProof(
        front.get("method", method),
        front.get("commit", ""),
        front.get("covers", {}),
        text[found.end() if found else 0 :].strip(),
    )
