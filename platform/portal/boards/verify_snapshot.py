"""Verify a snapshot of the leaderboards, with Python alone and without the site: `python verify.py [folder]`.

It checks that every file has the hash that SHA256SUMS says and that there are no others, and that the ranks follow from
the rows by the rules: who qualifies, and in which order, of equal rows the earlier submission first. It doesn't check
that a score is right, which needs the secret test set.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

SUMS = "SHA256SUMS"
SNAPSHOT = "snapshot.json"


def problems(folder: Path) -> list[str]:
    """Return everything that is wrong with a snapshot."""
    found = list(_of_files(folder))
    # Ranks of rows that were changed say nothing.
    return found or list(_of_ranks(json.loads((folder / SNAPSHOT).read_text(encoding="utf-8"))))


def _of_files(folder: Path) -> Iterator[str]:
    lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    named = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    there = {path.name for path in folder.iterdir()} - {SUMS}
    yield from (f"{name} is not listed in {SUMS}" for name in sorted(there - named.keys()))
    for name, digest in sorted(named.items()):
        if name not in there:
            yield f"{name} is missing"
        elif hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
            yield f"{name} has another SHA-256 than {SUMS} says"


def _of_ranks(snapshot: dict[str, Any]) -> Iterator[str]:
    for track in snapshot["tracks"]:
        for board in track["boards"]:
            name = f"{track['slug']}, ε = {board['budget']:g}" if board["budget"] else track["slug"]
            yield from (
                f"{name}: {problem}" for problem in _of_board(board, track["rules"]["anls_threshold"])
            )


def _of_board(board: dict[str, Any], threshold: float) -> Iterator[str]:
    rows = board["rows"]
    ranked = [row for row in rows if row["rank"] is not None]
    if [row["rank"] for row in ranked] != list(range(1, len(ranked) + 1)):
        yield "the ranks are not 1, 2, 3 and so on"
    for row in rows:
        if _qualifies(row, board["budget"], threshold) != (row["rank"] is not None):
            yield f"{row['method']} has {'a' if row['rank'] else 'no'} rank, against the rules"
    values = [_value(row, board["budget"]) for row in ranked]
    for row, value, following in zip(ranked, values, values[1:], strict=False):
        if following < value:
            yield f"rank {row['rank']} is worse than the one after it"


def _qualifies(row: dict[str, Any], budget: float | None, threshold: float) -> bool:
    results = row["results"]
    if results["anls"] is None or row["status"] == "rejected" or row["is_disqualified"]:
        return False
    if budget is None:
        return results["bytes_total"] is not None and results["anls"] >= threshold
    return results["epsilon"] is not None and results["epsilon"] <= budget


def _value(row: dict[str, Any], budget: float | None) -> tuple[float, datetime]:
    value = float(row["results"]["bytes_total"] if budget is None else -row["results"]["anls"])
    return value, datetime.fromisoformat(row["submitted_at"])


def main(arguments: list[str]) -> int:
    """Print what is wrong, and return the exit status."""
    folder = Path(arguments[0]) if arguments else Path(__file__).parent
    found = problems(folder)
    verdict = (
        f"{len(found)} problems" if found else "Every file is as it was made, and the ranks follow the rules."
    )
    sys.stdout.write("\n".join([*found, verdict]) + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
