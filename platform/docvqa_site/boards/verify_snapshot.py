"""Verify a snapshot of the leaderboards, with Python alone and without the site: `python verify.py [folder]`.

It checks that every file has the hash that SHA256SUMS says and that there are no others, and that the ranks follow from
the rows by each track's rule, which the snapshot has: who qualifies, and in which order; the earlier submission breaks
the last ties. Ranks that need counted bytes or an examination by the rules of a phase must have them. It doesn't check
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
            yield f"{name} does not match its SHA-256 in {SUMS}"


def _of_ranks(snapshot: dict[str, Any]) -> Iterator[str]:
    for track in snapshot["tracks"]:
        for board in track["boards"]:
            name = f"{track['slug']}, ε = {board['budget']:g}" if board["budget"] else track["slug"]
            limits = {**track["rules"], "budget": board["budget"]}
            found = [
                *_of_board(board["rows"], track["rule"], limits, _counted_phases(track["phases"])),
                *_of_examinations(board["rows"], track["phases"]),
            ]
            yield from (f"{name}: {problem}" for problem in found)


def _counted_phases(phases: list[dict[str, Any]]) -> set[str]:
    """Return the names of the phases that rank counted bytes alone, where bytes rank."""
    return {phase["name"] for phase in phases if phase["requires_counted"]}


def _of_board(
    rows: list[dict[str, Any]], rule: dict[str, Any], limits: dict[str, Any], counted: set[str]
) -> Iterator[str]:
    ranked = [row for row in rows if row["rank"] is not None]
    if [row["rank"] for row in ranked] != list(range(1, len(ranked) + 1)):
        yield "the ranks are not 1, 2, 3 and so on"
    for row in rows:
        qualifies = _qualifies(row, rule, limits) and (not rule["ranks_bytes"] or _is_believed(row, counted))
        if qualifies != (row["rank"] is not None):
            yield f"{row['method']} has {'a' if row['rank'] else 'no'} rank, against the rules"
    values = [_value(row, rule["order"]) for row in ranked]
    for row, value, following in zip(ranked, values, values[1:], strict=False):
        if following < value:
            yield f"rank {row['rank']} is worse than the one after it"


def _of_examinations(rows: list[dict[str, Any]], phases: list[dict[str, Any]]) -> Iterator[str]:
    for phase in phases:
        ranked = [row for row in rows if row["rank"] is not None and row["phase"] == phase["name"]]
        level = phase["examined_level"]
        for row in ranked[: phase["examined_ranks"]]:
            if row["results"]["trust_level"] < level:
                yield f"{row['method']} has rank {row['rank']} without an examination of level {level}"


def _qualifies(row: dict[str, Any], rule: dict[str, Any], limits: dict[str, Any]) -> bool:
    results, at_least, at_most = row["results"], rule["at_least"], rule["at_most"]
    needed = {term.lstrip("-") for term in rule["order"]} | at_least.keys() | at_most.keys()
    return (
        row["status"] != "rejected"
        and not row["is_disqualified"]
        and not row["is_withheld"]
        and results["failed_level"] is None
        and _is_confirmed(results, rule["confirmed_from"], limits)
        and all(results[name] is not None for name in needed)
        and all(results[name] >= limits[limit] for name, limit in at_least.items())
        and all(results[name] <= limits[limit] for name, limit in at_most.items())
    )


def _is_believed(row: dict[str, Any], counted: set[str]) -> bool:
    """Return whether the row's bytes are counted, or may be declared and nobody has to look at their log first."""
    results = row["results"]
    is_doubtful = results["log_flag"] and not row["is_log_accepted"]
    return not is_doubtful and (results["counting"] == "counted" or row["phase"] not in counted)


def _is_confirmed(results: dict[str, Any], limit: str, limits: dict[str, Any]) -> bool:
    """Return whether the run's sums are tied to its checkpoint, or an examination has confirmed it."""
    return not limit or not results["unbound"] or bool(results["trust_level"] >= limits[limit])


def _value(row: dict[str, Any], order: list[str]) -> tuple[Any, ...]:
    """Return what the row is ordered by: the smallest first, or the largest after a minus; then by time."""
    results = row["results"]
    values = (-results[term[1:]] if term.startswith("-") else results[term] for term in order)
    return (*values, datetime.fromisoformat(row["submitted_at"]))


def _notes(folder: Path) -> Iterator[str]:
    """Yield which tracks have ranked runs whose results must be read by other rules than those of the track."""
    for track in json.loads((folder / SNAPSHOT).read_text(encoding="utf-8"))["tracks"]:
        if count := len(track.get("earlier_rules", [])):
            yield f"{track['slug']}: ranked runs judged under earlier rules, see earlier_rules in {SNAPSHOT}: {count}"


def main(arguments: list[str]) -> int:
    """Print what is wrong, and return the exit status."""
    folder = Path(arguments[0]) if arguments else Path(__file__).parent
    found = problems(folder)
    verdict = (
        f"{len(found)} problems" if found else "All files are unchanged, and the ranks follow the rules."
    )
    sys.stdout.write("\n".join([*found, verdict, *([] if found else _notes(folder))]) + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
