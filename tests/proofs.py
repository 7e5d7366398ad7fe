"""The proofs under docs/proofs, each pinned to the files that it was read against.

    python -m tests.proofs renew docs/proofs/<method>.md

pins a proof to what the files execute, so that a comment or a message doesn't make it stale. Do so after reading it
against them: docs/kit-proofs.md.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from starter_kit.runs.executed_code import file_sha256

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "proofs"
FRONT_MATTER = re.compile(r"---\n(.*?\n)---\n", re.DOTALL)

GitId = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class FrontMatter(BaseModel):
    """What a proof speaks of: see docs/kit-proofs.md."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: str
    status: Literal["current", "stale"]
    commit: GitId
    covers: Annotated[dict[str, Sha256], Field(min_length=1)]


def read_proof(text: str) -> tuple[FrontMatter, str]:
    """A proof's front matter, and its Markdown.

    Raises:
        ValueError: There is no front matter, or one of another form.
    """
    found = FRONT_MATTER.match(text)
    if found is None:
        raise ValueError("a proof begins with front matter between two lines ---")
    return FrontMatter.model_validate(yaml.safe_load(found[1])), text[found.end() :]


def renewed(text: str, *, root: Path, commit: str) -> str:
    """The proof, current and pinned to the files under `root` as they are."""
    front, markdown = read_proof(text)
    covers = {path: file_sha256(root / path) for path in front.covers}
    pinned = front.model_copy(update={"status": "current", "commit": commit, "covers": covers})
    # The empty line keeps renderers that know no front matter from taking it for a heading.
    return f"---\n{yaml.safe_dump(pinned.model_dump(), sort_keys=False, width=200)}\n---\n{markdown}"


def moved(front: FrontMatter, *, root: Path) -> list[str]:
    """The covered files that are gone, or are no longer those that the proof is pinned to."""
    return [
        path
        for path, pinned in front.covers.items()
        if not (root / path).is_file() or file_sha256(root / path) != pinned
    ]


def main(arguments: list[str]) -> None:
    match arguments:
        case ["renew", file]:
            head = subprocess.run(
                ["git", "rev-parse", "HEAD"], cwd=ROOT, text=True, capture_output=True, check=True
            )
            path = Path(file)
            path.write_text(
                renewed(path.read_text(encoding="utf-8"), root=ROOT, commit=head.stdout.strip()),
                encoding="utf-8",
            )
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
