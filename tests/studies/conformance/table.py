"""Tallies as a table in Markdown."""

from collections.abc import Mapping, Sequence

from tests.studies.conformance.tallies import Tally, current, earlier


def table(tallies: Sequence[Tally], codes: Mapping[str, str]) -> str:
    """Return the rows: name, alarms by the present code, what was found, the longest trial, alarms by earlier code.

    Args:
        codes: The hash of the present code for each name.
    """
    before = earlier(tallies, codes)
    return "\n".join(
        _row(now, [old for old in before if old.name == now.name]) for now in current(tallies, codes)
    )


def alarms_of(tallies: Sequence[Tally]) -> str:
    """Return the alarms of all trials, as "0 of 200"."""
    return f"{sum(tally.alarms for tally in tallies)} of {sum(tally.trials for tally in tallies)}"


def _row(now: Tally, before: Sequence[Tally]) -> str:
    found = ", ".join(f"`{id_}`: {times}" for id_, times in now.found.items()) or "nothing"
    made = [alarms_of([now]), found, f"{now.longest_s:.1f} s"] if now.trials else ["not tried", "", ""]
    return f"| {' | '.join([now.name, *made, alarms_of(before) if before else ''])} |"
