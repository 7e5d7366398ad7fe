"""Deadlines as a calendar file (RFC 5545)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

MOMENT = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True)
class Deadline:
    """When something ends; `uid` is the same whenever the calendar is fetched."""

    uid: str
    title: str
    at: datetime


def calendar(deadlines: Iterable[Deadline], address: str, now: datetime) -> str:
    """Return a calendar with an event at each deadline, and a reminder a day before."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//PFL-DocVQA//Deadlines//EN"]
    for deadline in deadlines:
        lines += _event(deadline, address, now)
    return "".join(f"{_folded(line)}\r\n" for line in [*lines, "END:VCALENDAR"])


def _event(deadline: Deadline, address: str, now: datetime) -> list[str]:
    return [
        "BEGIN:VEVENT",
        f"UID:{deadline.uid}",
        f"DTSTAMP:{now.astimezone(UTC).strftime(MOMENT)}",
        f"DTSTART:{deadline.at.astimezone(UTC).strftime(MOMENT)}",
        f"SUMMARY:{_escaped(deadline.title)}",
        f"URL:{address}",
        "BEGIN:VALARM",
        "ACTION:DISPLAY",
        f"DESCRIPTION:{_escaped(deadline.title)}",
        "TRIGGER:-P1D",
        "END:VALARM",
        "END:VEVENT",
    ]


def _escaped(text: str) -> str:
    for special in "\\;,":
        text = text.replace(special, f"\\{special}")
    return " ".join(text.split())


def _folded(line: str) -> str:
    """Return the line in pieces of at most 75 bytes (section 3.1); no character is cut."""
    pieces, piece = [], ""
    for character in line:
        # The space with which a further piece begins counts as well.
        if len((piece + character).encode()) > 74:
            pieces.append(piece)
            piece = ""
        piece += character
    return "\r\n ".join([*pieces, piece])
