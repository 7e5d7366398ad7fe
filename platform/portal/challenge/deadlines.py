"""A track's deadline as a calendar file (RFC 5545)."""

from datetime import UTC, datetime

MOMENT = "%Y%m%dT%H%M%SZ"


def calendar(uid: str, title: str, address: str, at: datetime, now: datetime) -> str:
    """Return a calendar with one event at the deadline, and a reminder a day before."""
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//PFL-DocVQA//Deadlines//EN",
        "BEGIN:VEVENT",
        f"UID:{uid}",
        f"DTSTAMP:{now.astimezone(UTC).strftime(MOMENT)}",
        f"DTSTART:{at.astimezone(UTC).strftime(MOMENT)}",
        f"SUMMARY:{_escaped(title)}",
        f"URL:{address}",
        "BEGIN:VALARM",
        "ACTION:DISPLAY",
        f"DESCRIPTION:{_escaped(title)}",
        "TRIGGER:-P1D",
        "END:VALARM",
        "END:VEVENT",
        "END:VCALENDAR",
    ]
    return "".join(f"{_folded(line)}\r\n" for line in lines)


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
